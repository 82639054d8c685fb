"""The claim untied-attention: what it says, its experiment and its theory."""
