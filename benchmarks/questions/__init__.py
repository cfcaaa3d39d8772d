"""The questions, a file each; `all.py` lists them. Child processes load one question and not its neighbours."""

from __future__ import annotations
