"""Benchmarks: each question of docs/explanation/benchmarks.md has a file; one run measures inorder and its peers.

`python -m benchmarks` runs them; see `benchmarks.__main__`. To begin, read `harness.py` (the comparison of rates),
`systems/__init__.py` (the abilities of a contestant), and one file of `questions`.
"""

from __future__ import annotations
