"""The claim threshold-units: what it says, and its experiment."""
