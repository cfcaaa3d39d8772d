"""Histories that are written out: what chance reaches late, or seldom, is reached in every run.

A part is a list of steps, made of the machine's own rules with chosen arguments. After each the queues are cleared;
then connections 0, 1 and 2 have one handle each, of queue A, and the handles have the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from tests.machine.everything import Everything
from tests.machine.stories import FATES, HOLDS, MEMBER_HOLDS, ODDITIES, READINGS

from inorder import Flags

Step = Callable[[], object]
Options = Mapping[str, Any]
IN_GROUP, LAST_IN_GROUP, SEGMENT, LAST_SEGMENT = (
    Flags.IN_GROUP,
    Flags.LAST_IN_GROUP,
    Flags.SEGMENT,
    Flags.LAST_SEGMENT,
)


def lives(one: Everything) -> Iterator[Step]:
    """Every way in which a message can be held, and everything that can then happen to it."""
    for hold, fate in product(HOLDS, FATES):
        yield partial(one.live, choice=0, hold=hold, fate=fate)

    def confirmed_when_it_is_gone() -> None:
        one.put(choice=0, length=4, fields={}, options={})
        one.get(choice=0, options={})
        one.confirm_get(choice=0, role="put", back=0, confirm_id=0)
        one.confirm_put(choice=0, role="put", back=0, confirm_id=0)

    yield confirmed_when_it_is_gone


def flaws(one: Everything) -> Iterator[Step]:
    """A logical message, and a group, with a piece that is missing or odd, read in every way."""
    for flaw, oddity, omit, reading in product((1, 3), ODDITIES, (True, False), READINGS):
        if not (omit and oddity):
            yield partial(
                one.flawed_group,
                choice=0,
                reader=1,
                sizes=[2, 2],
                grouped=flaw == 3,
                flaw=flaw,
                oddity=oddity,
                omit=omit,
                reading=reading,
                reads=3,
            )


def readers(one: Everything) -> Iterator[Step]:
    """Members that are held, readers in each other's way, browsers that mark, cursors."""
    for kind in MEMBER_HOLDS:
        yield partial(one.next_member_pending, choice=1, kind=kind)
    for number, order in product((0, 1), (True, False)):
        yield partial(one.cross, number=number, order=order)
    for seconds in (0.0, 5.0):
        yield partial(one.browse_together, seconds=seconds, how={"mark_co_op": True})

    def a_marked_one_by_its_token() -> None:
        one.put(choice=0, length=4, fields={"priority": 9}, options={})
        one.browse_together(seconds=0.0, how={"mark_co_op": True})

    def browse_in_two_ways() -> None:
        one.put(choice=0, length=4, fields={}, options={})
        one.browse(choice=0, position="first", options={})
        one.browse(choice=0, position="next", options={"logical": True})
        one.browse(choice=0, position="next", options={"read_order": "strict"})

    def complete_from_the_middle() -> None:
        numbers = {"group_id": b"g1", "offset": 4, "flags": LAST_SEGMENT, "sequence_number": 1}
        one.put_by_hand(choice=0, length=4, fields={}, numbers=numbers, options={})
        one.browse(choice=0, position="first", options={})
        one.get(choice=0, options={"under_cursor": True, "complete": True})

    def small_buffers() -> None:
        one.put(choice=0, length=4, fields={"persistent": True}, options={})
        one.get(choice=0, options={"buffer": 2})
        one.get(choice=0, options={"buffer": 2, "accept_truncated": True})

    def broken_wait() -> None:
        one.wait(choice=0, seconds=100.0, options={"read_order": "strict"})
        one.lose_connection(number=0, orderly=False)

    def empty_segment() -> None:
        one.put_in_sequence(choice=0, length=0, flags=SEGMENT, syncpoint=True)

    yield from (
        a_marked_one_by_its_token,
        empty_segment,
        browse_in_two_ways,
        complete_from_the_middle,
        small_buffers,
        broken_wait,
    )


def writers(one: Everything) -> Iterator[Step]:
    """Logical messages, groups and streams as wholes, and what does not go on with them."""
    for syncpoint, lengths in product((True, False), ((4, 4), (40, 4))):

        def segments(syncpoint: bool = syncpoint, lengths: tuple[int, int] = lengths) -> None:
            first, second = lengths
            one.put_in_sequence(choice=0, length=first, flags=SEGMENT, syncpoint=syncpoint)
            one.put_in_sequence(choice=0, length=second, flags=LAST_SEGMENT, syncpoint=syncpoint)
            one.get_in_sequence(choice=1, options={"logical": True})
            one.get_in_sequence(choice=1, options={"logical": True})

        yield segments

    def segments_that_do_not_go_on() -> None:
        one.put_in_sequence(choice=0, length=4, flags=SEGMENT, syncpoint=True, persistent=True)
        one.put_in_sequence(choice=0, length=4, flags=0, syncpoint=True, persistent=True)
        one.close(choice=0, delete=False, purge=False)

    yield segments_that_do_not_go_on
    for syncpoint, flags in product((True, False), (0, IN_GROUP, LAST_IN_GROUP, SEGMENT | IN_GROUP)):

        def goes_on_otherwise(syncpoint: bool = syncpoint, flags: int = flags) -> None:
            one.put_in_sequence(choice=0, length=4, flags=IN_GROUP, syncpoint=True, persistent=True)
            one.put_in_sequence(choice=0, length=4, flags=flags, syncpoint=syncpoint, persistent=False)
            one.put_in_sequence(choice=0, length=4, flags=flags, syncpoint=syncpoint, persistent=True)
            one.close(choice=0, delete=False, purge=False)

        yield goes_on_otherwise
    for wreck, last in product(("", "raise", "commit", "back out"), (True, False)):

        def group(wreck: str = wreck, last: bool = last) -> None:
            one.write_group(number=0, name="A", count=3, last=last, wreck=wreck)
            one.get_group(number=1, name="A", limit=None)

        yield group

    def pieces() -> None:
        one.alter(name="A", changes={"max_length": 16})
        one.put_long(choice=0, length=40, logical=False, syncpoint=True)
        one.put_long(choice=0, length=40, logical=False, syncpoint=False)
        one.settle(number=0, outcome="commit")
        one.put(choice=0, length=4, fields={}, options={"syncpoint": True})
        one.get(choice=0, options={"complete": True, "syncpoint": False})
        one.get(choice=1, options={"complete": True})
        one.allow_all()

    yield pieces
    for length, flags, breaks in product((0, 10, 40), (0, LAST_IN_GROUP), (True, False)):

        def stream(length: int = length, flags: int = flags, breaks: bool = breaks) -> None:
            one.put_stream(number=0, name="A", length=length, flags=flags, breaks=breaks)
            one.get_stream(number=1, name="A")

        yield stream


def definitions(one: Everything) -> Iterator[Step]:
    """Queues that come and go, and limits."""
    for model, persistent, then in product(("MODEL.T", "MODEL.P"), (True, False), ("close", "delete", "purge")):
        yield partial(one.dynamic, model=model, persistent=persistent, then=then)
    for base in ("B", "NONE"):
        yield partial(one.change_alias, base=base)
    for base in ("ALIAS", "MODEL.T"):
        yield partial(one.alter_alias, base=base)
    for name in ("MODEL.T", "ALIAS"):
        yield partial(one.wrong_kind, name=name)
    yield partial(one.alter, name="ALIAS", changes={"max_depth": 5})  # which an alias does not have
    for dynamic in ("*", "DYN.*", "D", "bad name"):
        yield partial(one.open_one, number=0, name="MODEL.P", options={}, dynamic=dynamic)

    def for_one_thing() -> None:
        one.open_one(number=0, name="A", options={"browse": True}, dynamic="*")
        one.put(choice=3, length=4, fields={}, options={})
        one.get(choice=3, options={})

    def limits() -> None:
        one.alter_manager(changes={"max_handles": 2, "max_uncommitted": 2})
        for _ in range(3):
            one.open_one(number=0, name="A", options={"output": True}, dynamic="*")
            one.put(choice=0, length=4, fields={}, options={"syncpoint": True})
        one.alter(name="A", changes={"max_length": 32})
        one.put(choice=1, length=40, fields={}, options={})
        one.allow_all()

    def gone_or_inhibited() -> None:
        one.put(choice=0, length=4, fields={}, options={})
        one.get(choice=0, options={})
        one.delete_message(choice=0, role="any", back=0, lock=None)
        one.set_through_a_handle(choice=0, attribute="put_allowed", value=False)
        one.put(choice=0, length=4, fields={}, options={})
        one.allow_all()

    def stopped() -> None:
        one.restart(stop=True)

    yield from (for_one_thing, limits, gone_or_inhibited, stopped)


STRICTLY: Options = {"read_order": "strict"}
GROUPS: Options = {"logical": True, "all_messages": True}
COLUMNS: tuple[Mapping[str, list[Any]], ...] = (
    {},
    {"group_key": [1, "a", 1, None]},
    {"order_key": [2, 1, None, b"a"]},
    {"group_key": [1, 1, 2, 2], "order_key": [2, 1, 2, 1], "priority": [0, 5, 9, None]},
    {"group_id": [b"g1"] * 3 + [None], "sequence_number": [1, 2, 3, 1], "flags": [8, 8, 24, 0]},
    {"group_id": [b"g1"] * 3 + [None], "sequence_number": [1, 3, 3, 1], "flags": [8, 8, 24, 0]},
)


def _fill(one: Everything) -> None:
    one.put(choice=0, length=4, fields={}, options={})
    one.write_group(number=0, name="A", count=3, last=True, wreck="")
    one.put(choice=0, length=4, fields={"priority": 9}, options={})


def prepares(one: Everything) -> Iterator[Step]:
    """A unit of work with a put is prepared and committed, in each order of a queue."""
    for order in ("put", "prepare", "commit"):

        def prepared(order: str = order) -> None:
            one.alter(name="A", changes={"order": order})
            one.put(choice=0, length=4, fields={}, options={"syncpoint": True})
            one.prepare(number=0, name="u1")
            one.settle_prepared(name="u1", outcome="commit")

        yield prepared


def leased(one: Everything) -> Iterator[Step]:
    """A lease that holds a put and a get meets each of its ends, and then what else may be tried with it."""
    ends: Mapping[str, Callable[[], object]] = {
        "commit": lambda: one.settle_lease(number=1, back=0, outcome="commit"),
        "back out": lambda: one.settle_lease(number=1, back=0, outcome="back_out"),
        "ended by an operator": lambda: one.end_lease(back=0),
        "over": lambda: one.advance(seconds=5.0),
        "over later": lambda: (one.extend_lease(number=1, back=0, seconds=100.0), one.advance(seconds=5.0)),
    }
    for order, end in product(("put", "commit"), ends):

        def held(order: str = order, end: str = end) -> None:
            one.alter(name="A", changes={"order": order})
            _fill(one)
            one.begin_lease(number=0, seconds=4.0)
            one.enter_lease(number=0, back=0)
            one.get(choice=0, options={})
            one.put(choice=0, length=4, fields={}, options={})
            ends[end]()
            one.get(choice=1, options={"read_order": "strict"})
            one.put(choice=0, length=4, fields={}, options={})
            one.end_block(number=0, fails=False)
            one.settle_lease(number=1, back=0, outcome="commit")

        yield held


def claims(one: Everything) -> Iterator[Step]:
    """Claims by two applications, in order and not, and what operators do about them; surveys."""
    for options in ({}, STRICTLY, {"logical": True}, GROUPS, {**GROUPS, **STRICTLY}):

        def one_by_one(options: Options = options) -> None:
            _fill(one)
            for back in (0, 0, 1, 0):
                one.claim(choice=1, application="app", options=options, most=2, slices=0 if back == 0 else 2, back=back)
                one.claim(choice=2, application="other", options=options, most=1)
            one.settle_claims(choice=1, application="app")

        yield one_by_one
    for how in ("finish", "release", "leave group"):

        def ended_by_an_operator(how: str = how) -> None:
            _fill(one)
            for _ in range(2):
                one.claim(choice=1, application="app", options={"logical": True}, most=2)
            one.operate_on_claims(name="A", application="app", how=how)
            one.claim(choice=1, application="app", options={})
            one.begin_claims(choice=1, application="app")

        yield ended_by_an_operator

    def not_in_order() -> None:
        _fill(one)
        for _ in range(2):
            one.claim(choice=1, application="app", options={}, most=1)
        for back in (2, -1):
            one.claim(choice=1, application="app", options={}, back=back)
        for behind in (0, 1, 2):
            one.plan_claims(choice=1, application="app", behind=behind, slices=2)

    yield not_in_order
    for options in ({}, STRICTLY, GROUPS, {**GROUPS, **STRICTLY}):

        def surveys(options: Options = options) -> None:
            one.survey(choice=1, options=options)
            _fill(one)
            one.survey(choice=1, options=options, most=2)

        yield surveys


def claims_ahead(one: Everything) -> Iterator[Step]:
    """A claim is taken ahead, and comes to each of its ends."""
    for options in ({}, STRICTLY, {"logical": True}, GROUPS, {**GROUPS, **STRICTLY}):
        for end in ("asked for", "returned", "begun again", "restart", "finish", "release", "leave group"):

            def taken_ahead(options: Options = options, end: str = end) -> None:
                _fill(one)
                one.claim(choice=1, application="app", options=options, most=2)
                one.claim_ahead(choice=1, application="app", options=options, most=2)
                if end == "returned":
                    one.return_ahead(choice=1, application="app")
                elif end == "begun again":
                    one.begin_claims(choice=1, application="app")
                elif end == "restart":
                    one.restart_store()
                elif end != "asked for":
                    one.operate_on_claims(name="A", application="app", how=end)
                one.claim(choice=1, application="app", options=options, most=2)
                one.claim(choice=2, application="other", options=options, most=1)
                one.settle_claims(choice=1, application="app", back=1)
                one.claim_ahead(choice=1, application="app", options=options, most=2)
                one.claim(choice=1, application="app", options=options, most=2)

            yield taken_ahead


def stagings(one: Everything) -> Iterator[Step]:
    """Batches of two writers, settled, settled again, undone, and over."""
    for nth, (given, wrong) in enumerate(product(COLUMNS, (0, 1)), 1):

        def batch(given: Mapping[str, list[Any]] = given, wrong: int = wrong, nth: int = nth) -> None:
            rows = ([4, 1, 0, 4], given)
            for name in ("one", "two"):
                one.stage(choice=0, name=name, rows=rows)
            one.settle_staging(names=["one", "two"], batch=nth, wrong=wrong)
            one.stage(choice=0, name="three", rows=rows)
            one.settle_staging(names=["three"], batch=nth)
            one.stage(choice=0, name="u1", rows=rows)
            one.undo_staging(["one", "three"])

        yield batch

    def over() -> None:
        one.stage(choice=0, name="u1", rows=([4], {}))
        one.advance(seconds=10.0)
        one.discard_expired(limit=1000)
        one.settle_staging(names=["one"], batch=0)

    yield over


PARTS = (lives, flaws, readers, writers, definitions, prepares, leased, claims, claims_ahead, stagings)
