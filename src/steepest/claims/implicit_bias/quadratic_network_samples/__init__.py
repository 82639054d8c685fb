"""The claim quadratic-network-samples."""
