"""The claim kernel-ball: what it says, theory and experiment."""
