"""The console: the queue manager in a browser, at ``/console/``. It only browses, so viewing pages changes no messages.

It uses the same queue manager as other clients (`inorder.aio`), and checks `Identity.may` for each page and each act.
It needs the extra ``inorder[server]``.

* **`page.py`** is what a page is, and a **visit** to one; **`pages.py`** the table of all, which each page joins with a
  line.
* **`console.py`** finds the page, asks who comes, checks forms, and shows errors. **`log_in.py`** is logging in and
  out, **`forms.py`** what a form carries against forgery, **`notices.py`** what the next page says.
* **`rendering.py`** makes pages of the templates in ``templates``; **`labels.py`** has times and sizes as people read
  them; **`files.py`** serves ``static``: a style sheet, htmx, and a few lines of script.
* **`api.py`** is the page about our HTTP interface, **`described.py`** reads the OpenAPI description of that, and
  **`curl.py`** makes lines for a shell of it.
"""

from __future__ import annotations

from .console import Console

__all__ = ["Console"]
