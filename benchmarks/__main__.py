"""The command: answers questions, judges the bars, and writes the report.

python -m benchmarks                          all questions with all contestants
python -m benchmarks limit                    inorder and the limit, in memory and on disk: the ratios
python -m benchmarks put_one get_one --quick  some questions, a quick look
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from tools.ending import ended_by_signals

from benchmarks import group_commit, machine, pages, report, servers
from benchmarks.harness import Question, Site, run
from benchmarks.questions.all import BESIDE_THE_LIMIT, QUESTIONS
from benchmarks.systems.all import PLACES, ClientMissingError, systems_named

ROUNDS, SECONDS = 5, 1.0
QUICK_ROUNDS, QUICK_SECONDS, QUICK_SCALE = 3, 0.3, 0.01
LIMIT = "limit"


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Answers questions about speed.")
    parser.add_argument(
        "names", nargs="*", metavar="question", help=f"some of: {', '.join([LIMIT, *QUESTIONS])}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="a quick look: little time, everything large made small")
    parser.add_argument("--full", action="store_true", help="also what takes gigabytes")
    parser.add_argument("--rounds", type=int, help=f"rounds; default {ROUNDS}")
    parser.add_argument("--seconds", type=float, help=f"seconds for each figure in each round; default {SECONDS:g}")
    parser.add_argument("--systems", nargs="+", choices=PLACES, metavar="system", help=f"some of: {', '.join(PLACES)}")
    parser.add_argument("--parent", type=Path, default=Path("/var/tmp"), help="where the folder of the run is made")
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="the same in memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure of every round")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report; default: print it")
    parser.add_argument(
        "--pages", action="store_true", help="write README.md and the pages of docs, if everything is measured"
    )
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.names if name not in QUESTIONS and name != LIMIT]
    if unknown:
        parser.error(f"no question {unknown[0]!r}; there are {', '.join([LIMIT, *QUESTIONS])}")
    if LIMIT in arguments.names and len(arguments.names) > 1:
        parser.error(f"{LIMIT} stands for {', '.join(BESIDE_THE_LIMIT)}: ask it by itself")
    return arguments


@contextmanager
def site_of(arguments: argparse.Namespace) -> Iterator[Site]:
    """Yields new folders for the run, with servers that write to the one on disk; removes all at the end."""
    keys = arguments.systems or (["inorder", LIMIT] if arguments.names == [LIMIT] else list(PLACES))
    systems = systems_named(keys)
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = servers.temporary_folder(arguments.parent)
        stack.callback(shutil.rmtree, folder)
        memory = None
        if arguments.memory.is_dir():
            memory = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="inorder-bench-", dir=arguments.memory))
            )
        ports = stack.enter_context(servers.running([key for key in keys if key in servers.SERVERS], folder))
        scale = QUICK_SCALE if arguments.quick else 1
        yield Site(folder=folder, memory=memory, systems=systems, ports=ports, scale=scale, full=arguments.full)


def teller(words: str) -> Callable[[str], None]:
    """Returns a function that shows the progress and the seconds so far on one line of standard error."""
    start = time.monotonic()

    def tell(more: str) -> None:
        end, begin = ("", "\r\x1b[K") if sys.stderr.isatty() else ("\n", "")
        print(f"{begin}{words}: {more}, {time.monotonic() - start:.0f} s", end=end, file=sys.stderr, flush=True)

    return tell


def is_whole(arguments: argparse.Namespace) -> bool:
    """Whether the run measures all questions with all contestants."""
    return not (arguments.names or arguments.quick or arguments.systems)


def questions_of(names: Sequence[str]) -> list[Question]:
    """Returns the questions with these names."""
    return [QUESTIONS[name] for name in (BESIDE_THE_LIMIT if list(names) == [LIMIT] else names or QUESTIONS)]


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; writes the report so far after each question."""
    arguments = arguments_of(words)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    questions = questions_of(arguments.names)
    with site_of(arguments) as site:
        found = report.Run(
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            facts=machine.facts(site.folder),
            rounds=rounds,
            seconds=seconds,
            scale=site.scale,
            results=[],
        )
        for number, question in enumerate(questions, 1):
            tell = teller(f"{number} of {len(questions)}, {question.name}")
            result = run(question, site, rounds=rounds, seconds=seconds, tell=tell)
            tell("done\n" if sys.stderr.isatty() else "done")
            found = replace(found, results=[*found.results, result])
            report.write(found, json_file=arguments.json, markdown_file=arguments.report)
        if arguments.pages and is_whole(arguments):
            pages.write(found)
            group_commit.write_page(site.folder, teller("group commit"))
    if arguments.pages and not is_whole(arguments):
        print("README.md and docs stay as they are: not everything was measured", file=sys.stderr)
    if arguments.names == [LIMIT]:
        print(report.beside_the_limit(found.results), end="\n\n")
    elif arguments.report is None:
        print(report.as_markdown(found))
    print(report.judged(found.results), pages.bars_in_short(found.results), sep="\n\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
    except (ClientMissingError, servers.ServerError) as error:
        sys.exit(str(error))
