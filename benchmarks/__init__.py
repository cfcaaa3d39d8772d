"""Benchmarks: each question of docs/explanation/benchmarks.md in a file, answered beside its peers in one run.

`python -m benchmarks` runs them; see `benchmarks.__main__`. A newcomer reads `harness.py` (how rates are compared),
`systems/__init__.py` (what a contestant can do), and one file of `questions`.
"""

from __future__ import annotations
