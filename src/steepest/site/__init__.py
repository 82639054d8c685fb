"""Drawing and pages: stored results as a static site."""
