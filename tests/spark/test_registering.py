"""Registering: the interpreter of the workers is looked at first; old versions of PySpark are told what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.helpers.support import bodies_at

import inorder
import inorder.spark
from inorder.errors import OptionsError
from inorder.spark.registering import check_python
from inorder.spark.versions import STREAMS_SINCE, need

SOURCE = Path(inorder.__file__).parents[1]
SECONDS_MAX = 300


@pytest.mark.spark
def test_spark_finds_the_format_by_itself(folder: Path) -> None:
    """In a process of its own: in this one it is registered."""
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
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "6\n"), ran.stderr[-3000:]
    assert "replaced" not in ran.stderr, "Spark would warn of a second registration"


def test_a_thread_that_registers_may_write(queues: SparkSession, url: str) -> None:
    """Spark looks for the format of a write in the thread's active session, and a thread begins without one."""
    rows = queues.createDataFrame([("1",)], "body string")

    def write() -> None:
        inorder.spark.register(queues)
        rows.write.format("inorder").option("queue", "Q").mode("append").save(url)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()
    assert bodies_at(url) == [b"1"]


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


def test_an_old_pyspark_is_told_what_to_install() -> None:
    need(STREAMS_SINCE, "a stream from a queue", "", version=(4, 2))
    with pytest.raises(OptionsError, match=r"needs PySpark 4\.2 or later, this is 4\.1: pip install 'pyspark>=4.2'"):
        need(STREAMS_SINCE, "a stream from a queue", "browse in batches", version=(4, 1))
