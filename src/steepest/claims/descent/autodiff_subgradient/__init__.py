"""The claim autodiff-subgradient."""
