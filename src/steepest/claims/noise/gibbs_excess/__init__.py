"""The claim gibbs-excess: what it says, and its potential."""
