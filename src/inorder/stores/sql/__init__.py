"""What every SQL database shares: rows and transactions by statements, which each database has in files of its own."""
