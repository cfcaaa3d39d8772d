"""The layers of the package."""

from __future__ import annotations

from .svg import MARGIN, WIDTH, Picture

# From the top: a layer, and the files and packages of src/inorder in it. Imports go down.
LAYERS: tuple[tuple[str, str, str], ...] = (
    ("doors", "cli, server, aio, testing, demo", "three"),
    ("Spark", "spark, over arrow", "three"),
    ("formats", "channels, formats, mqsc, integrations", "three"),
    ("", "across, by_hand, labels, passwords", "three"),
    ("", "trigger_monitor, dead_letter_handler", "three"),
    ("facade", "manager, signatures, upgrading", "one"),
    ("", "work, lending", "one"),
    ("", "requesting, dead", "one"),
    ("work", "groups, bulk, operating, listening", "one"),
    ("", "defining, processes, users, acts", "one"),
    ("", "handle, browsing, confirming, keywords", "one"),
    ("", "session, unit_of_work, leases", "one"),
    ("", "services, secret", "one"),
    ("", "events, callers", "one"),
    ("stores", "memory: lists; sqlite over sql: a file", "two"),
    ("", "store, bulk, operator: all the verbs", "two"),
    ("", "reading, putting, settling: their work", "two"),
    ("", "verb, queue: one transaction", "two"),
    ("", "protocol, backend: the two seams", "two"),
    ("rules", "rules: lifecycle, ordering, grouping ...", "two"),
    ("words", "attributes, process_attributes", "box"),
    ("", "channel_attributes, selecting", "box"),
    ("", "message, properties, options, attribute", "box"),
    ("", "kinds, field_checks", "box"),
    ("errors", "errors, reasons", "box"),
)
HIGH, STEP, TOP = 32, 38, 44


def draw() -> str:
    picture = Picture("The layers of the package, from the doors down to the errors", TOP + len(LAYERS) * STEP + 12)
    picture.text(MARGIN, 28, "A file imports from its own layer and from those below it.", "faint")
    for n, (name, files, kind) in enumerate(LAYERS):
        y = TOP + n * STEP
        picture.text(MARGIN, y + 21, name, "bold")
        picture.rectangle(96, y, WIDTH - 96 - 44, HIGH, kind)
        picture.text(108, y + 21, files)
    x = WIDTH - 24
    picture.arrow([(x, TOP), (x, TOP + len(LAYERS) * STEP - 6)])
    return picture.svg()
