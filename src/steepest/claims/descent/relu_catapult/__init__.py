"""The claim relu-catapult: what it says, and its experiment."""
