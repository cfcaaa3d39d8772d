"""The command: answers questions and writes the report.

python -m benchmarks                          everything, beside Redis and PostgreSQL; about half an hour
python -m benchmarks put_one get_one --quick  some questions, a quick look
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import machine, report, servers
from benchmarks.harness import Question, Site, run
from benchmarks.questions.all import QUESTIONS

ROUNDS, SECONDS = 5, 2.0
QUICK_ROUNDS, QUICK_SECONDS, QUICK_SCALE = 3, 0.3, 0.01


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Answers questions about speed.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of: {', '.join(QUESTIONS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="a quick look: little time, everything large made small")
    parser.add_argument("--full", action="store_true", help="also what takes gigabytes")
    parser.add_argument("--rounds", type=int, help=f"rounds; default {ROUNDS}")
    parser.add_argument("--seconds", type=float, help=f"seconds for each figure in each round; default {SECONDS:g}")
    parser.add_argument("--servers", nargs="*", choices=servers.SERVERS, default=servers.USUAL, help="peers to start")
    parser.add_argument("--parent", type=Path, default=Path("/var/tmp"), help="where the folder of the run is made")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure of every round")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the page; default: print it")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.names if name not in QUESTIONS]
    if unknown:
        parser.error(f"no question {unknown[0]!r}; there are {', '.join(QUESTIONS)}")
    return arguments


@contextmanager
def site_of(arguments: argparse.Namespace) -> Iterator[Site]:
    """A folder of the run's own, with servers that write to it; both are gone afterwards."""
    folder = servers.temporary_folder(arguments.parent)
    try:
        with servers.ended_by_signals(), servers.running(arguments.servers, folder) as ports:
            scale = QUICK_SCALE if arguments.quick else 1
            yield Site(folder=folder, ports=ports, scale=scale, full=arguments.full)
    finally:
        shutil.rmtree(folder)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; the report is written after each question, as far as it has come."""
    arguments = arguments_of(words)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    questions: list[Question] = [QUESTIONS[name] for name in arguments.names or QUESTIONS]
    with site_of(arguments) as site:
        found = report.Run(
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            facts=machine.facts(site.folder),
            rounds=rounds,
            seconds=seconds,
            scale=site.scale,
            results=[],
        )
        for question in questions:
            print(f"{question.title} ...", file=sys.stderr, flush=True)
            found = replace(found, results=[*found.results, run(question, site, rounds=rounds, seconds=seconds)])
            report.write(found, json_file=arguments.json, markdown_file=arguments.report)
    if arguments.report is None:
        print(report.as_markdown(found))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
    except servers.ServerError as error:
        sys.exit(str(error))
