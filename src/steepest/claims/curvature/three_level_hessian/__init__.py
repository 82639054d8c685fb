"""The claim three-level-hessian: on networks of ours, and on a reader's own."""
