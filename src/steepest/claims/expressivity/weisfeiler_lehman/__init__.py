"""The claim weisfeiler-lehman."""
