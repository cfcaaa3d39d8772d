"""Long runs: what a store costs its processes stays flat, no wait is lost, and everyone is served.

`opens` opens and closes, `wake_ups` kills and stops processes that wait for each other,
`mixed` does all kinds of work while the clock is set, `fair` measures how long a put can take among many. `usage` says
what a process and a store use, `report` what was found. `python -m tools.soak` runs them.
"""

from __future__ import annotations
