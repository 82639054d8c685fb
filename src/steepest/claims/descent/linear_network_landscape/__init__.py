"""The claim linear-network-landscape: what it says."""
