"""Exits: functions named in a channel's definition, which see each message on its way (C-7).

An exit is called with the message and the channel's definition. The message that it returns is sent, changed or not;
if it returns None, the message becomes a dead letter at its destination. An exit that raises stops the channel. After a
lost answer the exit sees the messages of a batch again.

Each process has a list of the modules whose functions it may call as exits. It imports those and no others: a
definition can name a function of them, and nothing else (W-9). The sender's exit runs in the process that runs the
channel, the receiver's in the process that has the receiver's store open: its server, if it is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module

from ...errors import ArgumentError, CallerError, Reason
from ...model.channel_attributes import ChannelAttributes
from ...model.message import Message
from ...stores.seam.channel_records import ChannelBatch

Exit = Callable[[Message, ChannelAttributes], Message | None]


def load(definition: ChannelAttributes, modules: Collection[str]) -> Exit | None:
    """Returns the exit that a definition names, module:function; None: it names none.

    Args:
        modules: the modules that this process allows.

    Raises ArgumentError: the module is not among them, cannot be imported, or does not define the function.
    """
    name = definition.message_exit
    if not name:
        return None
    module, _, function = name.partition(":")
    if module not in modules:
        if definition.type == "sender":
            how = f"start inorder channel run with --exits {module}, or pass it to run_channel as exits"
        else:
            opener = "the program that has the receiver's store open (inorder serve or channel run)"
            how = f"start {opener} with --exits {module}"
        raise _none(definition, f"this process does not allow the module {module}: {how}")
    try:
        found = vars(import_module(module)).get(function)
    except ImportError as error:
        raise _none(definition, f"it cannot be loaded: {error}") from error
    if not callable(found) or getattr(found, "__module__", None) != module:
        raise _none(definition, f"{module} does not define a function {function}")
    exit_: Exit = found
    return exit_


def check(modules: Collection[str]) -> None:
    """Imports the modules that this process allows. Raises ArgumentError if that fails."""
    for module in modules:
        try:
            import_module(module)
        except (ImportError, ValueError) as error:
            allowed = "a module on Python's path"
            text = f"exits must be {allowed}; {module!r} cannot be imported: {error}"
            raise ArgumentError(text, argument="exits", value=module, allowed=allowed) from error


def _none(definition: ChannelAttributes, why: str) -> ArgumentError:
    name, allowed = definition.message_exit, "module:function, of a module that this process allows"
    text = f"message_exit {name!r} of the {definition.type} channel {definition.name}: {why}"
    return ArgumentError(text, argument="message_exit", value=name, allowed=allowed)


def passed(batch: ChannelBatch, definition: ChannelAttributes, modules: Collection[str]) -> ChannelBatch:
    """Passes a batch through the exit of its sender or receiver, and notes the messages that it rejects.

    Raises: as `load`; CallerError if the exit raised, or returned something else.
    """
    exit_ = load(definition, modules)
    if exit_ is None:
        return batch
    gone, vetoed = list(batch.messages), set(batch.vetoed)
    for position, message in enumerate(batch.messages):
        if position in vetoed:
            continue
        try:
            changed = exit_(message, definition)
        except Exception as error:
            raise _failed(definition, f"raised {error!r}") from error
        if changed is None:
            vetoed.add(position)
        elif isinstance(changed, Message):
            gone[position] = changed.with_values(uid=message.uid, transmission=message.transmission)
        else:
            raise _failed(definition, f"returned {type(changed).__name__}, not a message")
    return batch._replace(messages=gone, vetoed=frozenset(vetoed))


def _failed(definition: ChannelAttributes, what: str) -> CallerError:
    return CallerError(f"{definition.message_exit} of channel {definition.name} {what}", reason=Reason.EXIT_FAILED)
