"""The claim linear-convolution."""
