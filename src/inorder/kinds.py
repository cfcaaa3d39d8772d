"""Kinds of message: their types, flags and report options, as MQ has them."""

from __future__ import annotations

import enum


class Flags(enum.IntFlag):
    """What a message is within its group and its logical message (MsgFlags, mq-semantics R1.10)."""

    NONE = 0
    SEGMENTATION_ALLOWED = 1
    SEGMENT = 2
    LAST_SEGMENT = 4
    IN_GROUP = 8
    LAST_IN_GROUP = 16


class MessageType(enum.IntEnum):
    """The kinds of message that MQ knows; applications add their own from 65536 (MsgType)."""

    REQUEST = 1
    REPLY = 2
    REPORT = 4
    DATAGRAM = 8


class Report(enum.IntFlag):
    """What a request says of the ids of its reply (Report; of MQ's bits those that something heeds).

    Without any the reply has a new message id, and the message id of the request as its correlation id.
    """

    NONE = 0
    PASS_CORRELATION_ID = 64
    PASS_MESSAGE_ID = 128
