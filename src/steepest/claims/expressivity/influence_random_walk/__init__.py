"""The claim influence-random-walk."""
