"""The claim double-descent: what it says, its experiment and its theory."""
