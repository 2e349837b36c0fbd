"""The ways to search, one per module."""
