"""The claim small-step-bias: what it says, and its exact laws."""
