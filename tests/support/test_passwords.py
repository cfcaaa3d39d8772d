"""Passwords as hashes, by argon2-cffi."""

from __future__ import annotations

import re
from typing import Any

import pytest

from inorder.errors import ArgumentError, CallerError
from inorder.support import passwords
from inorder.support.advice import how_to_install

pytest.importorskip("argon2", reason="argon2-cffi is not installed: pip install './inorder[server]'")


def test_a_hash_is_argon2id_salted_and_without_the_password() -> None:
    first, second = passwords.hashed("correct horse"), passwords.hashed("correct horse")
    assert first.startswith("$argon2id$")
    assert first != second
    assert "horse" not in first


@pytest.mark.parametrize("password", ["ünïcödé 🐎", "x" * passwords.LENGTH_MAX])
def test_only_the_right_password_is_accepted(password: str) -> None:
    kept = passwords.hashed(password)
    assert passwords.verifier(password)(kept)
    for wrong in (password[:-1], "\ud800", password * 2):
        assert not passwords.verifier(wrong)(kept)


def test_a_missing_or_damaged_hash_accepts_no_password() -> None:
    verify = passwords.verifier("correct horse")
    assert not verify(None)
    assert not verify("")
    assert not verify("$plain$correct horse")


@pytest.mark.parametrize("bad", ["", "short", "x" * 1025, b"correct horse", "\ud800" * 9], ids=repr)
def test_bad_passwords_are_refused_and_not_shown(bad: Any) -> None:
    with pytest.raises(ArgumentError, match=r"password must be a text") as refused:
        passwords.hashed(bad)
    assert not bad or str(bad) not in str(refused.value)


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    passwords._hasher.cache_clear()

    def gone(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(passwords, "import_module", gone)
    with pytest.raises(CallerError, match=re.escape(how_to_install("server"))):
        passwords.hashed("correct horse")
