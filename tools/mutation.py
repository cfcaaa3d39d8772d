"""Generated mutants: every decision of the stores, of handles and loops, and of scripts, broken in each usual way.

They are found in the syntax tree (`mutation_tree.py`) and in the named SQL statements (`mutation_sql.py`), so they
follow the code without maintenance. The name of a mutant consists of its file, its function, the broken decision with
its number in the function, and the change:

    stores/engine/reading.py Reading._take: condition 2 negated
    stores/sql/queries.sql next holder: min or max 1 swapped

It has no line and no text, and stays the same when other functions change. A hash of the name draws the sample: the
same seed gives the same mutants, and a new function adds its own without exchanging the others.

A generated mutant is judged by the scenario tables, on the store that it breaks. If it survives them, the unit tests
that mirror the file judge it: `JUDGES`. A mutant that nothing can catch, because it does the same as the code, is
*equivalent*: it was examined once, is listed in `mutants_equivalent.txt` with the reason, and is not tried again.

The tool is our own, and small, because existing tools bring their own runner: mutmut rewrites each function into a
switch between all its mutants and imports them into one pytest process; cosmic-ray keeps sessions in a database and
edits the files in place. Neither can run tables before tests, choose the store that judges, count a call that never
returns as caught, or mutate SQL, which makes half of the decisions here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import mutation_sql, mutation_tree
from .mutant import ROOT, SOURCE, CodeChangedError, Mutant

EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")

# The files to break: those that decide. Not files, processes and the code between them: crash tests and tests with
# planted faults break those, because their faults show when a process is killed or a disk is full. The methods of a
# seam's protocol are never called.
BROKEN = (
    "stores/**/*.py",
    "stores/sql/*.sql",
    "stores/sqlite/*.sql",
    "mq/mqsc/*.py",
    "arrow/framing.py",
    *(f"client/{name}.py" for name in "session queue groups unit_of_work bulk browsing".split()),
)
PLUMBING = """
    stores/engine/points.py stores/seam/protocol.py stores/seam/bulk_protocol.py stores/sql/engine.py
    stores/sql/leftovers.py
    stores/sqlite/backup.py stores/sqlite/bell.py stores/sqlite/coordination.py stores/sqlite/database.py
    stores/sqlite/engine.py stores/sqlite/faults.py stores/sqlite/host.py stores/sqlite/log.py stores/sqlite/opening.py
    stores/sqlite/statements.py stores/sqlite/watch.py
""".split()

# The unit tests that mirror a file: the tests of the first line with which its path begins.
CLAIMS = "tests/client/test_bulk.py tests/rules/test_claims.py"
STAGING = "tests/stores/test_staging.py tests/stores/test_staging_outside.py"
LOOKING = "tests/client/test_looking.py tests/client/test_manager.py"
CONNECTIONS = "tests/client/test_connections.py tests/client/test_session.py"
STORE = (
    "tests/stores/test_agreement.py tests/client/test_confirmed.py tests/client/test_units.py "
    "tests/client/test_handle.py"
)
GROUPS = "tests/client/test_groups.py tests/client/test_streams.py"
STRICT = "tests/client/test_strict.py tests/client/test_handle.py tests/client/test_browsing.py"
RETURNING = "tests/mq/test_triggers.py tests/client/test_retries.py tests/client/test_failing_calls.py"
WAITING = "tests/client/test_waiting.py tests/client/test_waiting_turns.py"
SERVER = "tests/stores/postgresql"  # with these first, only tests on PostgreSQL judge, otherwise only the others
JUDGES = {
    "arrow/framing": "tests/arrow/test_framing.py",
    "mq/mqsc/": "tests/mq/mqsc/test_reading.py tests/mq/mqsc/test_running.py tests/mq/mqsc/test_displaying.py",
    "client/session": (
        "tests/client/test_session.py tests/client/test_units.py tests/client/test_connections.py "
        "tests/client/test_failing_calls.py"
    ),
    "client/queue": ("tests/client/test_handle.py tests/client/test_streams.py tests/client/test_browsing.py"),
    "client/groups": "tests/client/test_groups.py tests/client/test_streams.py",
    "client/unit_of_work": "tests/client/test_units.py tests/client/test_session.py",
    "client/bulk": CLAIMS,
    "client/browsing": "tests/client/test_browsing.py",
    "stores/engine/wait": f"{WAITING} tests/client/test_strict.py",
    "stores/seam/telemetry": "tests/stores/test_telemetry.py",
    "stores/seam/changes": "tests/client/test_events.py",
    "stores/engine/claiming": CLAIMS,
    "stores/seam/surveying": CLAIMS,
    "stores/engine/staging": STAGING,
    "stores/engine/bulk": f"{CLAIMS} {STAGING}",
    "stores/engine/putting": (
        "tests/client/test_handle.py tests/client/test_failing_calls.py tests/stores/sqlite/test_cost.py"
    ),
    "stores/engine/sending": "tests/mq/test_channels.py",
    "stores/engine/receiving": "tests/stores/test_receiving.py tests/mq/test_channels_resumed.py",
    "stores/engine/dead_letters": "tests/client/test_dead_letters.py tests/client/test_retries.py",
    "stores/engine/user_records": "tests/client/test_users.py",
    "stores/engine/incremental_search": "tests/model/test_selectors.py tests/client/test_selecting.py",
    "stores/engine/triggering": "tests/mq/test_triggers.py",
    "stores/engine/settling": f"{STORE} {RETURNING}",
    "stores/seam/looking": LOOKING,
    "stores/engine/operator": LOOKING,
    "stores/engine/catalog": "tests/client/test_manager.py tests/client/test_dynamic_queues.py",
    "stores/seam/definitions": "tests/client/test_manager.py tests/client/test_dynamic_queues.py",
    "stores/engine/connections": (
        f"{CONNECTIONS} tests/stores/sqlite/test_opening.py tests/stores/sqlite/test_processes_owners.py"
    ),
    "stores/engine/confirming": (
        "tests/client/test_confirmed.py tests/client/test_leased_units.py tests/client/test_failing_calls.py"
    ),
    "stores/engine/reading": f"{STRICT} {WAITING} tests/model/test_selectors.py",
    "stores/engine/group_readers": f"tests/client/test_strict.py {GROUPS}",
    "stores/engine/queue": f"{STRICT} {GROUPS}",
    "stores/engine/process": f"{CONNECTIONS} tests/client/test_at_once.py",
    "stores/engine/operation": "tests/stores/sqlite/test_trouble_in_calls.py tests/stores/sqlite/test_attention.py",
    "stores/engine/getting": "tests/client/test_handle.py tests/server/store/test_attacks.py",
    "stores/engine/store": f"{STORE} {GROUPS} tests/client/test_failing_calls.py",
    "stores/memory/bulk": f"{CLAIMS} {STAGING} tests/stores/test_agreement.py",
    "stores/memory/checking": "tests/stores/test_checking_memory.py",
    "stores/sql/backend": f"{STORE} {RETURNING}",
    "stores/sql/bulk": f"{CLAIMS} tests/stores/sqlite/test_claims_file.py",
    "stores/sql/staged": f"{STAGING} tests/stores/sqlite/test_claims_file.py",
    "stores/sql/listing": (
        f"{LOOKING} tests/stores/sqlite/test_processes_views.py tests/stores/sqlite/test_processes_waits.py"
    ),
    "stores/sql/shortcuts": f"{STORE} {GROUPS} tests/client/test_strict.py tests/stores/sqlite/test_large_groups.py",
    "stores/sql/search": f"{STORE} {STRICT} {GROUPS}",
    "stores/sql/queries_claims": f"{CLAIMS} tests/stores/sqlite/test_claims_file.py",
    "stores/sql/fragments": f"{CLAIMS} tests/stores/sqlite/test_claims_file.py tests/stores/test_staging.py",
    "stores/sql/queries_bulk": f"{STAGING} tests/stores/sqlite/test_claims_file.py",
    "stores/sql/queries_views": LOOKING,
    "stores/sql/checks": "tests/stores/sqlite/test_checking.py",
    "stores/sql/queries.sql": f"{STORE} {GROUPS} {LOOKING}",
    "stores/sqlite/check": "tests/stores/sqlite/test_checking.py",
    "stores/postgresql/": f"{SERVER} tests/histories/test_scenarios.py",
    "stores/sql/shapes": "tests/stores/sqlite/test_damage.py",
    "stores/seam/damage": "tests/stores/sqlite/test_damage.py",
    "stores/": f"{STORE} tests/client/test_failing_calls.py",
}
# No table tests these, or their tests include the tables.
WITHOUT_TABLES = ("arrow/", "mq/mqsc/", "stores/memory/checking", "stores/sqlite/check", "stores/postgresql/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated(Mutant):
    """One decision, broken.

    Args:
        line: the line of the file, for readers of reports.
        start: where the old text begins, in characters.
        old, new: the text to replace, and its replacement.
    """

    line: int
    start: int
    old: str
    new: str

    def __str__(self) -> str:
        return self.name

    @property
    def by_tables(self) -> bool:
        return not self.file.startswith(WITHOUT_TABLES)

    @property
    def by_tests(self) -> tuple[str, ...]:
        return next(tuple(tests.split()) for path, tests in JUDGES.items() if self.file.startswith(path))

    @property
    def change(self) -> str:
        return " ".join(f"line {self.line}: {self.old} -> {self.new}".split())

    def apply(self, source: str) -> str:
        end = self.start + len(self.old)
        if source[self.start : end] != self.old:
            raise CodeChangedError("the code has changed since the mutants were made: start again")
        return source[: self.start] + self.new + source[end:]


# --- all mutants


def broken_files() -> list[str]:
    """The files to break, relative to src/inorder."""
    found = {path.relative_to(ROOT / SOURCE).as_posix() for glob in BROKEN for path in (ROOT / SOURCE).glob(glob)}
    return sorted(found - set(PLUMBING))


@cache
def generated() -> tuple[Generated, ...]:
    """All mutants, equivalent ones too. They are made once, from the code at the first call."""
    texts = {file: (ROOT / SOURCE / file).read_text(encoding="utf-8") for file in broken_files()}
    return tuple(mutant for file, text in texts.items() for mutant in of_text(file, text))


def of_text(file: str, source: str) -> Iterator[Generated]:
    """The mutants of one file, in its order."""
    places: dict[tuple[str, str], list[int]] = {}
    changes = mutation_sql.changes(source) if file.endswith(".sql") else mutation_tree.changes(source)
    for change in changes:
        # Two changes at the same place have the same number.
        known = places.setdefault((change.function, change.what), [])
        if change.start not in known:
            known.append(change.start)
        number = known.index(change.start) + 1
        name = f"{file} {change.function}: {change.what} {number} {change.how}"
        old = source[change.start : change.end]
        line = source.count("\n", 0, change.start) + 1
        yield Generated(file=file, name=name, line=line, start=change.start, old=old, new=change.new)


# --- which mutants


def sample(mutants: Sequence[Generated], size: int, seed: int) -> list[Generated]:
    """Draws this many of them by their names, in their order."""

    def draw(mutant: Generated) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    drawn = set(sorted(mutants, key=draw)[:size])
    return [mutant for mutant in mutants if mutant in drawn]


def read_equivalent(text: str) -> dict[str, str]:
    """The reasons why some are equivalent, by their names. Raises: ValueError, a name without a reason."""
    reasons: dict[str, str] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("    ") and name:
            reasons[name] = f"{reasons[name]} {line.strip()}".strip()
        elif line and not line.startswith(("#", " ")):
            name = line
            reasons[name] = ""
        elif line and not line.startswith("#"):
            raise ValueError(f"line {number}: {line!r} is a reason without a name")
    if unfounded := [name for name, reason in reasons.items() if not reason]:
        raise ValueError(f"no reason is given why these are equivalent: {', '.join(unfounded)}")
    return reasons


def without_equivalent(mutants: Sequence[Generated], reasons: Mapping[str, str]) -> list[Generated]:
    """The mutants that are not listed. Raises: ValueError, a listed one does not exist."""
    if gone := sorted(set(reasons) - {mutant.name for mutant in mutants}):
        raise ValueError(f"{EQUIVALENT.name} has names that no longer exist: {', '.join(gone)}")
    return [mutant for mutant in mutants if mutant.name not in reasons]
