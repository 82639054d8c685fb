"""The claim langevin-variance: what it says."""
