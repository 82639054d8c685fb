"""The claim border-breaks-equivariance: what it says, its experiment and its theory."""
