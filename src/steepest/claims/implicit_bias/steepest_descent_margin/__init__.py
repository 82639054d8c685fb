"""The claim steepest-descent-margin."""
