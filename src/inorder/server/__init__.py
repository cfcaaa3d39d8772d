"""The server: a queue manager for programs that speak HTTP, in other languages and on other machines.

`inorder serve` starts it; it needs the extra ``inorder[server]``. Each of its processes is a queue manager like any
other program (`inorder.aio`). No process keeps the state of a client, so a request may go to any of them.

* **`interface.py`** has the addresses of IBM MQ's REST interfaces. **`messaging.py`** handles messages, **`admin.py`**
  commands and the queue manager, **`queues.py`** queues as resources, and **`login.py`** sessions.
* **`api/`** is our own interface, with units of work, groups, locks and cursors; **`console/`** has the pages.
  **`addresses.py`** reads addresses for all of them, and **`disconnects.py`** ends requests whose client has gone.
* **`calls.py`** reads a request within the limits of **`settings.py`**. **`descriptors.py`** and
  **`user_properties.py`** write messages as headers, **`queue_objects.py`** queues as JSON, **`problems.py`** errors.
* **`identity.py`** is the seam for users and their authorities. **`users.py`** reads them from the store,
  **`authentication.py`** reads the credentials of a request, **`sessions.py`** makes cookies that every worker can
  verify, and **`subjects.py`** writes the subject of a client certificate.
* **`operator_log.py`** logs acts. `mq/mqsc/authorities.py` lists the authority that each command needs.
* Every request passes **`guard.py`**. **`watching.py`** answers probes and scrapes, **`logs.py`** writes the log.
* **`app.py`** builds the application of a worker, **`protocol.py`** handles a connection, **`running.py`** runs the
  processes. **`certificates.py`**, **`revocation.py`** and **`renewing.py`** have the files of TLS.
"""

from __future__ import annotations

from .app import application
from .identity import Authenticator, Authority, Identity, LaunchToken
from .settings import Limits, Settings

__all__ = ["Authenticator", "Authority", "Identity", "LaunchToken", "Limits", "Settings", "application"]
