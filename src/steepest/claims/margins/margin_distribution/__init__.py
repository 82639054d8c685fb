"""The claim margin-distribution."""
