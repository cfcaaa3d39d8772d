"""Kinds of message: their types, flags and report options, as MQ has them."""

from __future__ import annotations

import enum


class Flags(enum.IntFlag):
    """The place of a message in its group and its logical message (MsgFlags, mq-semantics R1.10)."""

    NONE = 0
    SEGMENTATION_ALLOWED = 1
    SEGMENT = 2
    LAST_SEGMENT = 4
    IN_GROUP = 8
    LAST_IN_GROUP = 16


class MessageType(enum.IntEnum):
    """The types of message that MQ defines; applications add their own from 65536 (MsgType)."""

    REQUEST = 1
    REPLY = 2
    REPORT = 4
    DATAGRAM = 8


class Report(enum.IntFlag):
    """The reports that a message asks for, and how a reply to it is made (Report; only the bits that have an effect
    here).

    A report or a reply gets a new message id, and the message id of its subject as correlation id, unless
    PASS_MESSAGE_ID or PASS_CORRELATION_ID is set. "With data" adds the first 100 bytes, "with full data" all.
    """

    NONE = 0
    PAN = 1  # the getter reports that it has done the work
    NAN = 2  # the getter reports that it has not
    PASS_CORRELATION_ID = 64
    PASS_MESSAGE_ID = 128
    COA = 256  # confirm on arrival: it has been put on the queue
    COA_WITH_DATA = 768
    COA_WITH_FULL_DATA = 1_792
    COD = 2_048  # confirm on delivery: it has been got
    COD_WITH_DATA = 6_144
    COD_WITH_FULL_DATA = 14_336
    PASS_DISCARD_AND_EXPIRY = 16_384
    EXPIRATION = 2_097_152  # it expired and was discarded
    EXPIRATION_WITH_DATA = 6_291_456
    EXPIRATION_WITH_FULL_DATA = 14_680_064
    EXCEPTION = 16_777_216  # it could not be delivered
    EXCEPTION_WITH_DATA = 50_331_648
    EXCEPTION_WITH_FULL_DATA = 117_440_512
    DISCARD_MESSAGE = 134_217_728  # if it cannot be delivered, discard it instead of making it a dead letter


class Feedback(enum.IntEnum):
    """The subject of a report (Feedback). Exception reports have the reason code; applications' own codes begin at
    65536.

    Three are reasons of dead letters: a trigger monitor cannot start a program, a message on its queue is not a trigger
    message, or a process definition has a type that it does not start.
    """

    NONE = 0
    EXPIRATION = 258
    COA = 259
    COD = 260
    APPL_CANNOT_BE_STARTED = 265
    TM_ERROR = 266
    APPL_TYPE_ERROR = 267
    PAN = 275
    NAN = 276
