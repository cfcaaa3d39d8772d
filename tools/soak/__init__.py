"""Long runs: the resources of a store's processes stay constant, no wait is lost, and every process is served.

`opens` opens and closes, `wake_ups` kills and stops processes that wait for each other,
`mixed` does all kinds of work while the clock is set, `fair` measures the duration of puts among many. `usage` measures
a process and a store, `report` has the findings. `python -m tools.soak` runs them.
"""

from __future__ import annotations
