"""The claim programs-are-networks: what it says, its circuits and its experiment."""
