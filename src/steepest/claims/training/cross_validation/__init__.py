"""The claim cross-validation: what it says, its experiment and its theory."""
