"""The claim adaboost-margin."""
