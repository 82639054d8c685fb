"""The claim two-cluster-hessian."""
