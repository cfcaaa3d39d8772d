"""The shared part of all SQL databases: rows and transactions. Each database has its own files of statements."""
