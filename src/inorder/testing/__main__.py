"""`python -m inorder.testing`: the old name of `python -m inorder_scenarios`."""

from __future__ import annotations

import sys
import warnings

from inorder_scenarios.__main__ import main

if __name__ == "__main__":
    warnings.warn(
        "python -m inorder.testing is now python -m inorder_scenarios; the old name ends with 0.3",
        DeprecationWarning,
        stacklevel=1,
    )
    sys.exit(main(program="python -m inorder.testing"))
