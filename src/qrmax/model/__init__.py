"""The decision process as data."""
