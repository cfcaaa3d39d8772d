"""Acts of another process that give a waiting get its message.

Each line: the statements before the wait, the options of the get, and the statement that ends the wait. The message
has the body 2.
"""

from __future__ import annotations

from typing import Any, Final

STRICT: Final = {"read_order": "strict"}
WAKING: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "put": ("", {}, "qm.put('Q', b'2')"),
    "commit of a put": ("qm.put('Q', b'2', syncpoint=True)", {}, "qm.commit()"),
    "commit of a put, strictly": (
        "qm.put('Q', b'2', syncpoint=True); other = qm.connect(); other.put('Q', b'3')",
        STRICT,
        "qm.commit()",
    ),
    "back out of a put": (
        "other = qm.connect(); other.put('Q', b'1', syncpoint=True); qm.put('Q', b'2')",
        STRICT,
        "other.back_out()",
    ),
    "commit of a prepared unit": (
        "qm.put('Q', b'2', syncpoint=True); qm.prepare('P'); qm.put('Q', b'3')",
        STRICT,
        "qm.settle('P', 'commit')",
    ),
    "back out of a prepared unit": (
        "qm.put('Q', b'1', syncpoint=True); qm.prepare('P'); qm.put('Q', b'2')",
        STRICT,
        "qm.settle('P', 'back_out')",
    ),
    "commit of a get": ("qm.put('Q', b'1'); qm.get('Q', syncpoint=True); qm.put('Q', b'2')", STRICT, "qm.commit()"),
    "back out of a get": ("qm.put('Q', b'2'); qm.get('Q', syncpoint=True); qm.put('Q', b'3')", STRICT, "qm.back_out()"),
    "back out of a get, relaxed": ("qm.put('Q', b'2'); qm.get('Q', syncpoint=True)", {}, "qm.back_out()"),
    "retry now": (
        "qm.put('Q', b'2')\nwith qm.unit_of_work() as unit: qm.get('Q'); unit.back_out(delay=600)",
        {},
        "qm.admin.retry_now('Q')",
    ),
    "unlock of what was browsed with lock": (
        "qm.put('Q', b'2'); queue = qm.open('Q', browse=True); queue.browse_first(lock=True)",
        {},
        "queue.unlock()",
    ),
    "a browse that moves on": (
        "qm.put_many('Q', [b'2', b'3']); queue = qm.open('Q', browse=True); queue.browse_first(lock=True)",
        STRICT,
        "queue.browse_next(lock=True)",
    ),
    "close of a handle that locked": (
        "qm.put('Q', b'2'); queue = qm.open('Q', browse=True); queue.browse_first(lock=True)",
        {},
        "queue.close()",
    ),
    "unlock by lock id": (
        "uid = qm.put('Q', b'2').uid; locked = qm.browse_and_lock('Q')",
        STRICT,
        "qm.unlock('Q', uid, lock_id=locked.lock_id)",
    ),
    "release of a lock id": (
        "qm.put('Q', b'2'); locked = qm.browse_and_lock('Q')",
        {},
        "qm.admin.release_lock('Q', locked.lock_id)",
    ),
    "undo of a lock id's confirm id": (
        "qm.put('Q', b'2'); locked = qm.browse_and_lock('Q', confirm_id=5)",
        {},
        "qm.undo('Q', 5)",
    ),
    "delete of what blocks": (
        "uid = qm.put('Q', b'1').uid; locked = qm.browse_and_lock('Q'); qm.put('Q', b'2')",
        STRICT,
        "qm.delete('Q', uid, lock_id=locked.lock_id)",
    ),
    "confirm of a put": ("uid = qm.put('Q', b'2', confirm_id=7).uid", {}, "qm.confirm_put('Q', uid)"),
    "undo of a put": ("qm.put('Q', b'1', confirm_id=7); qm.put('Q', b'2')", STRICT, "qm.undo('Q', 7)"),
    "confirm of a get": (
        "qm.put('Q', b'1'); uid = qm.get('Q', confirm_id=7).uid; qm.put('Q', b'2')",
        STRICT,
        "qm.confirm_get('Q', uid)",
    ),
    "undo of a get": ("qm.put('Q', b'2'); qm.get('Q', confirm_id=7)", {}, "qm.undo('Q', 7)"),
}
BROWSING: Final = ("put", "commit of a put, strictly", "back out of a put", "commit of a get", "back out of a get")
