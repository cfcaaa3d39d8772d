"""Messages as Arrow: the schema, pages of a store as record batches, and record batches as columns to stage.

Spark's source and sink, and bulk over HTTP, are built on this. It needs pyarrow, but not Spark.

* **`schema.py`** has the columns, **`properties.py`** the map that properties are in one.
* **`pages.py`** makes record batches of a store's pages, **`columns.py`** casts and checks columns that become
  messages.
* **`parquet.py`** writes messages to a Parquet file, piece by piece.
* **`framing.py`** cuts bytes that arrive in pieces into the messages of an IPC stream. It does not even need pyarrow.
"""
