"""The claim parity-margins: what it says, and its experiments."""
