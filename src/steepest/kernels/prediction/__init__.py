"""What a kernel predicts: solutions of its systems, regression, dynamics of training."""
