"""The claim kernel-point-process: what it says, and its experiment."""
