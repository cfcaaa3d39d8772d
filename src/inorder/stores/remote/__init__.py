"""A store elsewhere, reached over one WebSocket."""
