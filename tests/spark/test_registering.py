"""Registering: the interpreter of the workers is looked at first; old versions of PySpark are told what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import inorder
import inorder.spark
from inorder import OptionsError
from inorder.spark.registering import check_python
from inorder.spark.versions import STREAMS_SINCE, need


def test_registering_again_is_harmless(queues: SparkSession) -> None:
    inorder.spark.register(queues)


def test_the_workers_python_must_be_able_to_serve(folder: Path) -> None:
    check_python(sys.executable)
    with pytest.raises(OptionsError, match=r"'no-such-python', which is not there\. Set it before the first session"):
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
