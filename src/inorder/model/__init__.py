"""The values of the interface: messages, their properties and fields, options, attributes."""

from __future__ import annotations
