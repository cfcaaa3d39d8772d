"""Our own interface, at ``/inorder/v1``: messages, groups, locks and units of work, named like the Python calls.

**An operation is one value** (`describing.ApiOperation`): address, method, authority, parameters, body, answers, and
its handler. The table of operations routes, reads and checks requests, and refuses anything else in them. It also gives
the description: ``GET /inorder/v1/openapi.json``, the reference, and the page of the console.

**To add a module**, give it `OPERATIONS`, a tuple of `ApiOperation`, and, if its operations `ref` to JSON schemas,
`SCHEMAS` by name. Then add the module to `interface.MODULES`, with the group of its operations.

* **`interface.py`** finds the operation of a request and calls its handler. **`describing.py`** defines operations and
  schemas, **`parameters.py`** kinds of parameters, **`schemas.py`** messages as JSON, **`openapi.py`** the description.
* **`messages.py`** puts and gets, and **`taking.py`** decides when a get is final. **`browsing.py`** has pages and
  their cursors, **`confirming.py`** confirm ids and locks, **`leases.py`** units of work, **`bulk.py`** Arrow streams,
  **`events.py`** streams of events, **`queues.py`** queues.
"""
