"""`make demo` whole: loaders and Spark's driver are killed, and each file comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.__main__ import main

FILES = 12


@pytest.mark.gate
@pytest.mark.timeout(900)
def test_the_files_of_a_folder_come_back_as_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, output = tmp_path / "folder", tmp_path / "output"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text("".join(f"line {n} of {number}\n\n" for n in range(40)))
    status = main(["files", str(folder), "--output", str(output)])
    told = capsys.readouterr().out
    assert status == 0, told
    assert f"0 of {FILES} files differ from the originals" in told
    assert "errors in their order: 0." in told
    assert (output / "audit/report.html").is_file()
