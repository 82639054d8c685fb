"""The claim early-alignment."""
