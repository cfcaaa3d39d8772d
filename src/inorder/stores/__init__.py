"""Stores: the verbs (`seam.protocol`), and their implementations."""

from __future__ import annotations
