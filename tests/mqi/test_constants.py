"""The constants have the values that IBM's own have, as the package ibmmq brings them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from inorder.mqi.constants import of_headers

FILES = ("CMQC", "_CMQC_linux_x64", "CMQCFC", "CMQXC")
OF_PROGRAMS = re.compile(r"MQ(|(IA|CA)(CF|CH|MO)?|BACF|GACF|CMD|CMDL|AUTH|ENC)_")
LEVEL = re.compile(r"MQCMDL_CURRENT_LEVEL|MQ\w+_(FIRST|LAST)$")
CONSTANT = re.compile(r"^(MQ\w+) *= *\(?(-?(?:0x[0-9a-fA-F]+|\d+))\)? *$", re.MULTILINE)


def test_the_constants_are_those_of_ibmmq() -> None:
    package = find_spec("ibmmq")
    if package is None or package.origin is None:
        pytest.skip("needs ibmmq, which has no wheel for this system")
    folder = Path(package.origin).parent
    theirs = {
        name: int(value, 0)
        for file in FILES
        for name, value in CONSTANT.findall((folder / f"{file}.py").read_text(encoding="utf-8"))
    }
    ours = {name: value for name, value in of_headers().items() if isinstance(value, int)}
    assert not [name for name in theirs.keys() - ours.keys() if OF_PROGRAMS.match(name) and not LEVEL.match(name)]
    del ours["MQCA_LAST_USED"], ours["MQIA_LAST_USED"]  # it rises with the release
    both = ours.keys() & theirs.keys()
    assert len(both) > 1_500
    assert {name: ours[name] for name in both if ours[name] != theirs[name]} == {}
