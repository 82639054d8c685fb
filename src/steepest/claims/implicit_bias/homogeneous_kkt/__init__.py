"""The claim homogeneous-kkt."""
