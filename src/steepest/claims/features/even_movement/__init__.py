"""The claim even-movement."""
