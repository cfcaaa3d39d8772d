"""Exits: functions named in a channel's definition, which see each message on its way (C-7).

An exit is called with the message and the channel's definition. The message that it returns is sent, changed or not;
if it returns None, the message becomes a dead letter at its destination. An exit that raises stops the channel. After a
lost answer the exit sees the messages of a batch again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from ...errors import ArgumentError, CallerError, Reason
from ...model.channel_attributes import ChannelAttributes
from ...model.message import Message

Exit = Callable[[Message, ChannelAttributes], Message | None]


def load(name: str) -> Exit | None:
    """Loads the exit with this name, module:function; None if the name is empty. Raises ArgumentError."""
    if not name:
        return None
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise _none(name, f"it cannot be loaded: {error}") from error
    if not callable(found):
        raise _none(name, "it cannot be called")
    exit_: Exit = found
    return exit_


def _none(name: str, why: str) -> ArgumentError:
    allowed = "module:function, which this process can import"
    return ArgumentError(f"message_exit {name!r}: {why}", argument="message_exit", value=name, allowed=allowed)


def passed(
    messages: Sequence[Message], vetoed: frozenset[int], exit_: Exit | None, definition: ChannelAttributes
) -> tuple[Sequence[Message], frozenset[int]]:
    """Passes messages through an exit; also returns the positions of those that it rejected.

    Raises CallerError if the exit raised, or returned something else.
    """
    if exit_ is None:
        return messages, vetoed
    gone, vetoes = list(messages), set(vetoed)
    for position, message in enumerate(messages):
        if position in vetoes:
            continue
        try:
            changed = exit_(message, definition)
        except Exception as error:
            raise _failed(definition, f"raised {error!r}") from error
        if changed is None:
            vetoes.add(position)
        elif isinstance(changed, Message):
            gone[position] = changed.with_values(uid=message.uid, transmission=message.transmission)
        else:
            raise _failed(definition, f"returned {type(changed).__name__}, not a message")
    return gone, frozenset(vetoes)


def _failed(definition: ChannelAttributes, what: str) -> CallerError:
    return CallerError(f"{definition.message_exit} of channel {definition.name} {what}", reason=Reason.EXIT_FAILED)
