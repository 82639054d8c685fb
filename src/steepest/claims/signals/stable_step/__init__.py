"""The claim stable-step: what it says, theory, experiment and figure, and its version for a reader's own network."""
