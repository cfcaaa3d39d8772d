"""The console on sample data: `make console` to look around, `make screenshots` for the pictures in the docs."""
