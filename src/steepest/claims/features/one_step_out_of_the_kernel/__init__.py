"""The claim one-step-out-of-the-kernel."""
