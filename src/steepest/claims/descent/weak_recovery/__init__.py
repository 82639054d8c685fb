"""The claim weak-recovery."""
