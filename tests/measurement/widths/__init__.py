"""The coordinate check."""
