"""The claim logistic-ray."""
