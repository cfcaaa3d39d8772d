"""Proof by experiment: processes are killed, logs are cut, and a checker reads who was promised what.

`worker` does random work on a store and writes a history of its own; `observer` looks at the store when everyone is
dead; `checker` holds the histories against what is there. `crash` kills workers, `power` cuts the log, `reader` reads
strictly while others write.
"""

from __future__ import annotations
