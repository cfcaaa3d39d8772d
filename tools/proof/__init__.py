"""Proof by experiment: processes are killed, logs are cut, and a checker compares the store with all promises.

`worker` does random work on a store and writes its own history; `observer` inspects the store when all others are
dead; `checker` compares the histories with the store. `crash` kills workers, `power` cuts the log, `reader` reads
strictly while others write.
"""

from __future__ import annotations
