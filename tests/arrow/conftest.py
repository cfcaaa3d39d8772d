"""Skips all tests of this folder without pyarrow."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
