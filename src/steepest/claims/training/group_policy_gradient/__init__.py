"""The claim group-policy-gradient: what it says, its experiment and its theory."""
