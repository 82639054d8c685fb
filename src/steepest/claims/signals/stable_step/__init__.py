"""The claim stable-step: what it says, and its version for a reader's own network."""
