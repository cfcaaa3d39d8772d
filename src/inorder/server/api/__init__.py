"""Our own interface, at ``/inorder/v1``: messages, groups, locks, units of work, by the names of the Python calls.

**An operation is one value** (`describing.ApiOperation`): address, method, authority, parameters, body, answers, and
the function behind them. The table of operations serves for routing, for reading and checking requests, and as the
description: ``GET /inorder/v1/openapi.json`` is made from it, and so are the reference and the page of the console.
Anything else in a request is refused.

**How a module joins.** It has `OPERATIONS`, a tuple of `ApiOperation`, and may have `SCHEMAS`, the JSON schemas that
its operations `ref` to, by name. `interface.MODULES` names the module, and the group of its operations.

* **`interface.py`** finds the operation, and asks it; **`describing.py`** has the words of which one is made,
  **`parameters.py`** the kinds of parameters, **`schemas.py`** messages as JSON, **`openapi.py`** the description.
* **`messages.py`** puts and gets, **`taking.py`** says when a get is final; **`browsing.py`** has pages and their
  cursors, **`confirming.py`** confirm ids and locks, **`leases.py`** units of work, **`queues.py`** queues.
"""
