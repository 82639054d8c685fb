"""The claim lqr-rollouts: what it says, and its experiment."""
