"""Stores: the verbs (`base`), and what carries them out."""

from __future__ import annotations
