"""The claim several-negatives: what it says, and its experiment."""
