"""The claim adaptive-minority."""
