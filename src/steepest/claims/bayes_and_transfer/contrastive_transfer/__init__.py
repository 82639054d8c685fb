"""The claim contrastive-transfer: what it says, its theory, and its experiment at one point."""
