"""The claim lqr-policy-gradient: what it says, and its experiments."""
