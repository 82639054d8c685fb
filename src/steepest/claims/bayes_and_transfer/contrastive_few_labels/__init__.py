"""The claim contrastive-few-labels: what it says, and its experiment."""
