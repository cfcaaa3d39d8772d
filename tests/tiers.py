"""When a test runs, and on which stores.

`make test` runs whatever has no mark, on SQLite. `make gate` adds `gate`: what starts servers and processes, and on
PostgreSQL and in memory the facts marked `every_store`. `make nightly` runs `nightly`: all else.

A test that takes the fixture `kind`, `store` or `qm` is a fact about queues. It is tested once, on SQLite, and each
night on SQLite without the store's shortcuts. Mark it `every_store` only where the stores' own statements, locks or
lists could get it wrong and no scenario table would notice.
"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

gate = pytest.mark.gate
nightly = pytest.mark.nightly
every_store = pytest.mark.every_store

LONG_WAY = "sqlite-long-way"
ONCE: list[ParameterSet] = [pytest.param("sqlite"), pytest.param(LONG_WAY, marks=nightly)]
EVERY: list[ParameterSet] = [*ONCE, pytest.param("memory", marks=gate), pytest.param("postgresql", marks=gate)]
ON_BOTH: list[ParameterSet] = [pytest.param("sqlite"), pytest.param("postgresql", marks=gate)]
