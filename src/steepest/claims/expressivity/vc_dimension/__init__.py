"""The claim vc-dimension: what it says, and how dichotomies are counted."""
