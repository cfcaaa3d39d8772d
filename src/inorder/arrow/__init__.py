"""Messages as Arrow: the one schema, pages of a store as record batches, record batches as columns to stage.

Spark's source and sink, and bulk over HTTP, are made of this. It needs pyarrow, and nothing of Spark's.

* **`schema.py`** has the columns, **`properties.py`** the map that properties are in one.
* **`pages.py`** makes record batches of a store's pages, **`columns.py`** casts and judges what is to be messages.
* **`parquet.py`** writes messages as a file of Parquet, piece by piece.
* **`framing.py`** cuts bytes that arrive in pieces into the messages of an IPC stream. It needs not even pyarrow.
"""
