"""The page of an audit, made from given numbers without a Spark session."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from dataclasses import fields
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from inorder.model.fields import PUT_AT_MAX
from inorder.spark.jobs import Audited
from inorder.spark.jobs.findings import KINDS
from inorder.spark.jobs.picture_data import Age, PictureData
from inorder.spark.jobs.report import NO_PICTURES, Drawn, Provenance, html_report

SLICES = 4
NOTHING: dict[str, Any] = {field.name: {} for field in fields(PictureData)}
EMPTY = PictureData(**NOTHING | {"slices": 1, "places": 1, "has_ages": False, "ages": [], "timeline_width": 1})
FULL = PictureData(
    slices=SLICES,
    places=SLICES,
    density={(n, n): 1000 * n + 1 for n in range(SLICES)},
    overtakes={"overtake": {1: 5}, "overtake_in_group": {2: 1}},
    gaps={0: 1, 3: 1_000_000},
    repeats={2: 3},
    sizes={(0, True): 10, (3, True): 500, (3, False): 20},
    has_ages=True,
    ages=[Age(slice=n, least=0.1, mean=1, most=5) for n in range(SLICES)],
    timeline={1714550400.0 + 60 * n: 100 + n for n in range(30)},
    timeline_width=60,
)


ABOUT: dict[str, Any] = {
    "title": "An audit",
    "archive": "/data/archive",
    "made_at": 1714550400.0,
    "versions": "inorder 1",
    "call": "inorder pipeline audit /data/archive out",
}
SOURCE = Provenance(**ABOUT)


def audited(**values: Any) -> Audited:
    nothing: dict[str, Any] = {field.name: 0 for field in fields(Audited)}
    kinds = dict.fromkeys(KINDS, 0)
    made = nothing | {"order": "physical", "messages": 10, "queues": 1, "bytes": 100, "errors": kinds, "notes": kinds}
    made |= {"first_put_at": 1714550400.0, "last_put_at": None, "first_delivery": 1, "last_delivery": 10}
    return Audited(**made | values)


def finding(**values: Any) -> dict[str, Any]:
    made = {
        "kind": "overtake",
        "severity": "error",
        "queue": "Q",
        "group_id": "47" + "00" * 23,
        "sequence_number": 1,
        "offset": 0,
        "delivery_number": 1234,
        "rank": 0,
        "number": 5,
        "ordinal": 0,
        "expected": "1",
        "found": "2",
        "text": "out of order",
        "condition": "queue = 'Q' AND delivery_number = 1234",
    }
    return {**made, **values}


def drawn(data: PictureData) -> Drawn:
    pytest.importorskip("matplotlib", reason="needs the extra inorder[report]")
    from inorder.spark.jobs.charts import draw

    return draw(data)


@pytest.mark.parametrize(("data", "count"), [(EMPTY, 0), (FULL, 6)], ids=["empty", "full"])
def test_a_page_loads_nothing_external_is_reproducible_and_uses_no_id_twice(data: PictureData, count: int) -> None:
    pictures = drawn(data)
    made = html_report(SOURCE, audited(), pictures, [])
    assert made.count("<svg ") == count
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", made)
    assert "@import" not in made
    assert not re.search(r"url\((?!#)", made)
    ids = Counter(re.findall(r'\sid="([^"]+)"', made))
    assert [name for name, count in ids.items() if count > 1] == []
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', made)) <= set(ids)
    assert all(picture.caption.endswith(".") for picture in pictures.pictures)
    if data is FULL:
        assert pictures.pictures[3].caption == "Groups and segmented messages by size; 20 of 530 are not whole."
        assert pictures.pictures[5].caption == "Messages by the time of their put, a bar for each minute."
        assert html_report(SOURCE, audited(), drawn(data), []) == made


@pytest.mark.parametrize("times", [(0.0, 0.0), (PUT_AT_MAX, PUT_AT_MAX), (0.0, PUT_AT_MAX), (5e10, PUT_AT_MAX)])
def test_messages_of_any_time_from_1970_to_9999_are_drawn(times: tuple[float, float]) -> None:
    first, last = times
    width = max(0.001, (last - first) / 240)
    ages = [Age(slice=0, least=first, mean=(first + last) / 2, most=last)]
    timeline = {first // width * width: 3, last // width * width: 4}
    data = dataclasses.replace(FULL, has_ages=False, ages=ages, timeline=timeline, timeline_width=width)
    assert len(drawn(data).pictures) == 6


def test_pictures_have_the_colours_of_the_page_and_empty_ones_share_one_line() -> None:
    full = html_report(SOURCE, audited(), drawn(FULL), [])
    used = set(re.findall(r"var\(--(\w+)\)", full.partition("</style>")[2]))
    assert used == {"ink", "soft", "line", "axis", "blue", "red", "amber"}
    light, dark, *_ = re.findall(r":root \{([^}]+)\}", full)
    for block in (light, dark):
        assert used <= set(re.findall(r"--(\w+):", block)), "light and dark define each colour"
    assert "Nothing to draw" not in full
    partly = dataclasses.replace(FULL, overtakes={"overtake": {}, "overtake_in_group": {}}, sizes={})
    assert '<p class="absent">Nothing to draw: Overtakes, Groups.</p>' in html_report(
        SOURCE, audited(), drawn(partly), []
    )


def test_a_page_names_its_archive_time_versions_command_and_history() -> None:
    made = html_report(SOURCE, audited(), None, [])
    for text in ("<h1>An audit</h1>", "/data/archive", "2024-05-01 08:00:00 UTC", "inorder 1", ABOUT["call"]):
        assert text in made
    assert "During the run" not in made
    history = ["A loader was killed <in> x."]
    told = html_report(dataclasses.replace(SOURCE, archive="", history=history), audited(), None, [finding()])
    assert "<h2>During the run</h2><ul><li>A loader was killed &lt;in&gt; x.</li></ul>" in told
    assert "a DataFrame" in told
    assert '<code>archive.where("queue' in told


def test_a_page_escapes_texts_and_says_how_to_see_messages_and_what_pictures_need() -> None:
    source = dataclasses.replace(SOURCE, title="<b>")
    made = html_report(source, audited(), None, [finding(queue="<script>", text="a < b")])
    assert "<b>" not in made.partition("</h1>")[0].partition("<title>")[2]
    assert "<script>" not in made
    assert "a &lt; b" in made
    assert f"<p>{NO_PICTURES}</p>" in made
    assert "<figure>" not in made
    condition = "queue = 'Q' AND delivery_number = 1234"
    assert f'<code>spark.read.parquet("/data/archive").where("{condition}").show(vertical=True)</code>' in made
    assert made.count(f"<code>{condition}</code>") == 1


def test_facts_without_a_value_are_left_out() -> None:
    empty = {"first_put_at": None, "first_delivery": None, "last_delivery": None}
    assert list(audited(**empty).facts()) == ["promised order", "messages", "bytes of bodies"]
    full = audited(groups=2, put_earlier=1, last_put_at=1714550400.0).facts()
    assert list(full)[3:] == ["groups", "delivery numbers", "first put", "last put", "put out of order"]


@pytest.mark.parametrize(
    ("errors", "other", "says"),
    [
        (
            {},
            {},
            "No error in 10 messages: nothing is missing, and each message came after those before it on the queue.",
        ),
        (
            {"delivery_gap": 2, "message_repeated": 2, "delivery_repeated": 2},
            {"missing": 1_003},
            "1,003 missing, 2 doubled in 10 messages: the order is not what was promised.",
        ),
        (
            {"overtake": 2, "overtake_in_group": 1, "sequence_gap": 4},
            {"incomplete_groups": 1},
            "3 out of order, 1 group not whole in 10 messages: the order is not what was promised.",
        ),
        ({"place_repeated": 2}, {}, "2 errors in 10 messages: the order is not what was promised."),
    ],
)
def test_the_verdict_is_one_sentence_that_names_the_loss(
    errors: dict[str, int], other: dict[str, int], says: str
) -> None:
    told = audited(errors={**dict.fromkeys(KINDS, 0), **errors}, **other)
    assert told.verdict() == says
    assert told.as_text().startswith(says)
    assert all(f"{kind:<22} error" in told.as_text() for kind in errors)


def test_findings_are_above_the_pictures_and_kinds_that_were_not_found_share_one_line() -> None:
    errors = {**dict.fromkeys(KINDS, 0), "overtake": 3}
    made = html_report(SOURCE, audited(errors=errors), Drawn([], []), [finding()])
    assert made.index("<h2>Kinds of findings") < made.index("<h2>Findings") < made.index("<h2>Pictures")
    assert "<td>overtake</td>" in made
    assert "<td>delivery gap</td>" not in made
    absent = made.partition("Looked for and not found: ")[2].partition(".</p>")[0].split(", ")
    assert len(absent) == len(KINDS) - 1
    nothing = html_report(SOURCE, audited(), Drawn([], []), [])
    assert "<table>" not in nothing
    assert nothing.partition("Looked for and not found: ")[2].partition(".</p>")[0].count(",") == len(KINDS) - 1
