"""The claim spectral-margin-bound."""
