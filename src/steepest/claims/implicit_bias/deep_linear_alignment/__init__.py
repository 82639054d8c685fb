"""The claim deep-linear-alignment."""
