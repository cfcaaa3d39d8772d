"""The report of a long run: figures by name, and the faults found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class Report:
    """One run. It is sound if it found nothing."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "figures": self.figures, "findings": self.findings}

    def __str__(self) -> str:
        width = max(map(len, self.figures), default=0)
        rows = [f"  {name:{width}} {_told(value):>12}" for name, value in self.figures.items()]
        return "\n".join([self.name, *rows, *(f"  ! {finding}" for finding in self.findings)])


def _told(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
