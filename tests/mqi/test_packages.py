"""Packages from the registries, as their users install them: pymqi built from its sdist, ibmmq of npm. Rule: M-6.

Tests are skipped if the registry cannot be reached; the summary shows the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mqi.conftest import PROGRAMS, python

from inorder.mqi import building, c_headers
from inorder.testing.mq import MqTest

PYMQI = """
import sys
sys.path.insert(0, sys.argv[1])
import pymqi
from pymqi import CMQC
qm = pymqi.connect("QM1")
queue = pymqi.Queue(qm, "DEV.QUEUE.1")
md = pymqi.MD()
queue.put(b"hello", md)
queue.close()
queue = pymqi.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_INQUIRE)
print(queue.inquire(CMQC.MQIA_CURRENT_Q_DEPTH), queue.inquire(CMQC.MQCA_Q_NAME).strip())
again = pymqi.MD()
print(queue.get(None, again), again.MsgId == md.MsgId)
try:
    queue.get()
except pymqi.MQMIError as error:
    print(error.comp, error.reason)
handle = pymqi.MessageHandle(qm)
handle.properties.set(b"colour", "red")
print(handle.properties.get(b"colour"))
qm.disconnect()
qm.connect_with_options("QM1", user="anybody", password="secret")
qm.disconnect()
print(pymqi.pymqe.__mqlevels__[-1])
"""
TOLD_BY_PYMQI = ["1 b'DEV.QUEUE.1'", "b'hello' True", "2 2033", "red", "8.0.1"]


def installed(*command: str | Path, cwd: Path, **variables: str) -> None:
    """Runs an installer. Skips the test if the registry cannot be reached."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | variables, capture_output=True, text=True, check=False)
    if done.returncode and any(word in done.stdout + done.stderr for word in ("ConnectionError", "No matching dist")):
        pytest.skip("the registry of Python's packages cannot be reached")
    if done.returncode and any(word in done.stderr for word in ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN")):
        pytest.skip("the registry of npm cannot be reached")
    assert not done.returncode, done.stdout + done.stderr


@pytest.mark.gate
def test_pymqi_is_built_with_our_headers_and_works_with_library_and_substitute(mq: MqTest, tmp_path: Path) -> None:
    c_headers.write(tmp_path / "mq/inc")
    building.install(tmp_path / "mq/lib64")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    installed(
        *pip, "--target", tmp_path / "packages", "pymqi==1.12.13", cwd=tmp_path, MQ_FILE_PATH=str(tmp_path / "mq")
    )
    assert python(PYMQI, str(tmp_path / "packages")).splitlines() == TOLD_BY_PYMQI
    substituted = "from inorder.mqi.substitutes import install; install()\n"
    assert python(substituted + PYMQI, str(tmp_path / "packages")).splitlines() == TOLD_BY_PYMQI


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node.js and npm")
def test_the_package_of_node_gets_asynchronously(mq: MqTest, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "app", "version": "1.0.0"}')
    npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
    installed(*npm, "ibmmq@2.1.9", cwd=tmp_path, MQIJS_NOREDIST="1")
    shutil.copy(PROGRAMS / "asynchronous.js", tmp_path)
    done = subprocess.run(
        ["node", "asynchronous.js", "DEV.QUEUE.1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["GetSync first", "Get second", "Get third", "done"]), (
        done.stderr
    )
