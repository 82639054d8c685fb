"""The claim catapult-forgets-start: what it says, and its experiment."""
