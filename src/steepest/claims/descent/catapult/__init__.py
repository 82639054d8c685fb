"""The claim catapult: what it says, and its experiment at one point."""
