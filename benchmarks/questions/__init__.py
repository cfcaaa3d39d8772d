"""The questions, one in each file; `all.py` lists them. A child process loads only the question that it needs."""

from __future__ import annotations
