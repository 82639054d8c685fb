"""The claim parallel-certificate: what it says, and its experiments."""
