"""The site is built without a warning, and loads nothing from other sites."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the extra docs")
pytest.importorskip("pyspark", reason="the pages of the API load inorder.spark")

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("site")]  # built once, in one process

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 300
LOADED = re.compile(r"<(?:script|link|img|iframe|source|object)\b[^>]*?(?:src|href|data)=\"([^\"]*)\"", re.IGNORECASE)
OF_A_STYLE = re.compile(r"(?:@import|url\()\s*[\"']?([^\"')\s]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the site as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", str(ROOT / "docs"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert ran.returncode == 0, ran.stderr[-5000:]
    return folder


def is_elsewhere(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    loaded = {page.name: LOADED.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert not {name: found for name, found in loaded.items() if any(map(is_elsewhere, found))}


def test_no_style_loads_anything_from_elsewhere(site: Path) -> None:
    styles = list(site.rglob("*.css"))
    assert styles
    for style in styles:
        assert not list(filter(is_elsewhere, OF_A_STYLE.findall(style.read_text(encoding="utf-8"))))


def test_every_page_can_be_reached_from_the_first_one(site: Path) -> None:
    navigation = (site / "index.html").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    missing = [str(page) for page in pages if str(page) != "index.html" and f'href="{page}' not in navigation]
    assert not missing, f"put them into a toctree of docs/index.md: {missing}"


def test_the_first_page_begins_with_find_your_way_and_the_side_bar_is_folded(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2>([^<]+)", page)[0] == "Find your way"
    assert page.partition("<h2>Find your way")[0].rpartition("<h1>")[2].count("<p>") == 1
    captions = page.count('class="caption-text"')
    assert captions > 8
    assert page.count("<details><summary class='caption'>") == captions
    limits = (site / "limits.html").read_text(encoding="utf-8")
    assert limits.count("<details open><summary class='caption'>") == 1


def test_the_errors_in_a_docstring_are_a_field_with_links(site: Path) -> None:
    page = (site / "reference/api/manager.html").read_text(encoding="utf-8")
    entry = page.partition('id="inorder.QueueManager.delete_queue"')[2].partition("</dd></dl>\n</dd>")[0]
    assert "Raises" in entry
    assert 'href="errors.html#inorder.errors.QueueNotEmpty"' in entry
