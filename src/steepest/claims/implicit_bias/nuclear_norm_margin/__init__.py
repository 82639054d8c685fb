"""The claim nuclear-norm-margin."""
