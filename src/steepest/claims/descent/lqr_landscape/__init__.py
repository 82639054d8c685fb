"""The claim lqr-landscape: what it says."""
