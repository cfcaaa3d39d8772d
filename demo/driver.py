"""A process of the main job: a Spark driver that drains the queue, audits the archive and writes the files back.

It starts Spark at once, and begins when it gets its order, a line of JSON. It prints its progress on its output.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any

from inorder.spark import jobs, register

# The quick compiler alone, and one thread that collects: it lives for a minute, in which the thorough compiler of Java
# would take more processor time than the work.
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def tell(what: str, value: Any) -> None:
    """Prints a line for the parent process."""
    print(json.dumps([what, value]), flush=True)


def main() -> None:
    """Carries out the order."""
    with jobs.session("demo", driver_memory="1g", java_options=SHORT_LIFE) as spark:
        register(spark)  # starts the workers' interpreter
        tell("ready", os.getpid())
        order = json.loads(sys.stdin.readline())
        drained = jobs.drain(
            spark,
            order["store"],
            order["queue"],
            order["archive"],
            messages_per_batch=order["messages_per_batch"],
            progress=lambda now: tell("drained", [now.batch, now.messages]),
        )
        tell("archived", dataclasses.asdict(drained))
        audited = jobs.audit(
            spark,
            order["archive"],
            order["findings"],
            order="logical",
            title="Audit of the demonstration",
            history=order["history"],
            overwrite=True,
        )
        tell("audited", json.loads(audited.as_json()))
        jobs.unload(spark, order["archive"], order["rebuilt"])


if __name__ == "__main__":
    main()
