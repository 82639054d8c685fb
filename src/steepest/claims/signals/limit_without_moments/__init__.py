"""The claim limit-without-moments."""
