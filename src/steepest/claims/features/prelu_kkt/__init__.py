"""The claim prelu-kkt: what it says, its networks and descents, and its figure."""
