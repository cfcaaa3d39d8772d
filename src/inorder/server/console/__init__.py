"""The console: the queue manager in a browser, at ``/console/``. Viewing pages browses, and changes no messages.

It uses the same queue manager as other clients (`inorder.aio`), and checks `Identity.may` for each page and each act.
It needs the extra ``inorder[server]``.

* **`page.py`** defines a page, and a **visit** to one. **`console.py`** has the table of all pages, finds the page of a
  request, logs visitors in and out, and shows errors. Each module with pages adds a line to that table.
* **`rendering.py`** fills the templates in ``templates`` and serves the files in ``static``: a style sheet, htmx, and a
  few lines of script. **`labels.py`** writes times, sizes and bodies for people; **`listing.py`** makes the rows of
  messages and finds incomplete groups; **`watching.py`** samples the queues while a page is open.
* **`forms.py`** reads forms, protects them against forgery, and leaves a notice for the next page. **`acting.py`** has
  the acts on chosen messages, and logs each of them.
* **`defining.py`** has the forms for queues, which run MQSC; **`users.py`** those for users, which ask for the password
  again; **`tasks.py`** shows the records that workers keep in the store.
* The other modules are pages. **`api.py`** shows the OpenAPI description of our HTTP interface.
"""

from __future__ import annotations

from .console import Console, moved

__all__ = ["Console", "moved"]
