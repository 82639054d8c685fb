"""The claim synthetic-data: what it says, its experiment and its theory."""
