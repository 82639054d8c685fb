"""The claim relu-alignment."""
