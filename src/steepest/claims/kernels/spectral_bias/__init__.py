"""The claim spectral-bias."""
