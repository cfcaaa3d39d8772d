"""The server: a queue manager for programs that speak HTTP, in other languages and on other machines.

`inorder serve` starts it; it needs the extra ``inorder[server]``. Each of its processes is a queue manager like any
other program (`inorder.aio`). No process keeps the state of a client, so a request may go to any of them.

* **`interface.py`** has the addresses of IBM MQ's REST interfaces, and what is behind each: **`messaging.py`**
  messages, **`admin.py`** commands and the queue manager, **`queues.py`** queues as resources, **`login.py`** sessions.
* **`ours/`** is our own interface, with units of work, groups, locks and cursors. **`addresses.py`** and
  **`wanted.py`** have what both share: how an address is read, and how a request ends whose client has gone.
* **`calls.py`** is one request, read within the limits of **`settings.py`**; **`descriptors.py`** and
  **`user_properties.py`** are messages as headers, **`queue_objects.py`** queues as JSON, **`problems.py`** errors.
* **`identity.py`** is the seam for users: who asks, and what they may do. **`users.py`** asks the store for them,
  **`entrance.py`** reads what a request shows, **`sessions.py`** has cookies that every worker can verify.
* **`subjects.py`** writes the subject of a client certificate; **`needed.py`** says which authority a command needs,
  **`operator_log.py`** notes what was done.
* **`guard.py`** is what each request passes; **`watching.py`** what machines ask; **`logs.py`** the log.
* **`app.py`** puts a worker together, **`protocol.py`** is a connection, **`running.py`** the processes,
  **`certificates.py`** makes a certificate.
"""

from __future__ import annotations

from .app import application
from .identity import Authenticator, Authority, Identity, LaunchToken
from .settings import Limits, Settings

__all__ = ["Authenticator", "Authority", "Identity", "LaunchToken", "Limits", "Settings", "application"]
