"""The installed PySpark: registration, reads and writes, and the refusal of those that it does not support.

`make nightly` runs this file on each version from 4.0 on (`tools/spark_versions.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.spark.calls import on, put, run_to_end

import inorder
import inorder.spark
from inorder.errors import OptionsError
from inorder.spark.registering import check_python
from inorder.spark.source import InorderSource
from inorder.spark.versions import FILTERS_SINCE, STREAMS_SINCE, VERSION, need

SOURCE = Path(inorder.__file__).parents[1]
FOUND = ".".join(map(str, VERSION))


@pytest.mark.spark
def test_spark_finds_the_format_by_itself(folder: Path) -> None:
    """In a process of its own, since the format is registered in this one."""
    with inorder.connect(folder / "store.db") as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"1", b"2", b"3"])
    program = """if True:
        import sys
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        rows = spark.read.format("inorder").option("queue", "Q").load(sys.argv[1])
        rows.write.format("inorder").option("queue", "Q").mode("append").save(sys.argv[1])
        assert "inorder" not in sys.modules, "only the workers need it"
        import inorder.spark
        inorder.spark.register(spark)
        print(spark.read.format("inorder").option("queue", "Q").load(sys.argv[1]).count())
    """
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder / "store.db")],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join([str(SOURCE), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "6\n"), ran.stderr[-3000:]
    assert "replaced" not in ran.stderr, "Spark would warn of a second registration"


def test_a_thread_that_registers_may_write(queues: SparkSession, url: str) -> None:
    """Spark looks for the format of a write in the thread's active session, and a new thread has none."""
    rows = queues.createDataFrame([("1",)], "body string")

    def write() -> None:
        inorder.spark.register(queues)
        rows.write.format("inorder").option("queue", "Q").mode("append").save(url)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()
    assert on(url) == [b"1"]


def test_the_package_that_spark_finds_is_light() -> None:
    program = "import pyspark_inorder, sys; print('inorder' in sys.modules, pyspark_inorder.DefaultSource.name())"
    given = os.environ | {"PYTHONPATH": str(SOURCE)}
    assert subprocess.check_output([sys.executable, "-c", program], text=True, env=given) == "False inorder\n"


def test_the_workers_python_must_be_able_to_serve(folder: Path) -> None:
    check_python(sys.executable)
    with pytest.raises(OptionsError, match=r"'no-such-python', which does not exist\. Set it before the first session"):
        check_python("no-such-python")
    for name, script, told in (
        ("broken", "echo no module >&2; exit 1", "cannot import inorder.spark: no module"),
        ("old", "echo 3 8", "is Python 3.8, and this is 3"),
        ("good", f"echo {sys.version_info[0]} {sys.version_info[1]}", ""),
    ):
        other = folder / name
        other.write_text(f"#!/bin/sh\n{script}\n")
        other.chmod(0o755)
        if told:
            with pytest.raises(OptionsError, match=told):
                check_python(str(other))
        else:
            check_python(str(other))


def test_an_old_pyspark_is_refused_with_the_version_to_install() -> None:
    need(STREAMS_SINCE, "a stream from a queue", "", version=(4, 2))
    with pytest.raises(OptionsError, match=r"needs PySpark 4\.2 or later, this is 4\.1: pip install 'pyspark>=4.2'"):
        need(STREAMS_SINCE, "a stream from a queue", "browse in batches", version=(4, 1))


# --- features of this version


def test_a_stream_is_written(queues: SparkSession, url: str, folder: Path) -> None:
    queues.range(5).selectExpr("CAST(id AS STRING) AS body").write.parquet(str(folder / "rows"))
    rows = queues.readStream.schema("body STRING").parquet(str(folder / "rows"))
    run_to_end(rows, "inorder", folder, queue="Q", url=url)
    assert sorted(on(url)) == [b"0", b"1", b"2", b"3", b"4"]


def refused(work: Callable[[], object], what: str, since: tuple[int, ...]) -> None:
    """Checks that the error names the missing feature and the version to install."""
    wanted = ".".join(map(str, since))
    says = f"{what} needs PySpark {wanted} or later, this is {FOUND}: pip install 'pyspark>={wanted}'"
    with pytest.raises((OptionsError, PySparkException)) as caught:
        work()
    assert says in str(caught.value)


def test_filters_are_pushed_down_or_refused(queues: SparkSession, url: str) -> None:
    put(url, b"1", b"2")
    queues.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = queues.read.format("inorder").options(queue="Q", pushdown="true").load(url).where("priority = 0")
        if VERSION >= FILTERS_SINCE:
            assert rows.count() == 2
        else:
            refused(rows.count, "option pushdown", FILTERS_SINCE)
    finally:
        queues.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_stream_from_a_queue_runs_or_is_refused(queues: SparkSession, url: str, folder: Path) -> None:
    put(url, b"1", b"2")
    options = {"queue": "Q", "mode": "drain", "application": "archive"}

    def drain() -> None:
        run_to_end(queues.readStream.format("inorder").options(**options).load(url), "noop", folder)

    if VERSION >= STREAMS_SINCE:
        drain()
        with inorder.connect(url) as qm:
            (account,) = qm.bulk.claims()
            assert qm.depth("Q") + account.delivered == 2, "the last batch may be confirmed by the next start"
    else:
        refused(drain, "a stream from a queue", STREAMS_SINCE)
        source = InorderSource({"url": url} | options)
        refused(lambda: source.streamReader(source.schema()), "a stream from a queue", STREAMS_SINCE)
        with inorder.connect(url) as qm:
            assert qm.depth("Q") == 2


def test_this_is_the_version_that_the_tests_are_meant_for() -> None:
    """`tools/spark_versions.py` puts it first in the path."""
    for folder in Path(pyspark.__file__).parents:
        if folder.parent.name == "pyspark" and folder.parent.parent.name == "build":
            assert folder.name == FOUND
