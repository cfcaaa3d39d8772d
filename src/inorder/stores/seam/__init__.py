"""The seams between the interface and the stores, and between the stores and their backends: protocols and values."""

from __future__ import annotations
