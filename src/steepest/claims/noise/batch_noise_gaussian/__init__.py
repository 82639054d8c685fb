"""The claim batch-noise-gaussian."""
