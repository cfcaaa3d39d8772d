"""The plain values that programs pass in and get back: messages, properties, fields, options, attributes."""

from __future__ import annotations
