"""The claim logistic-max-margin."""
