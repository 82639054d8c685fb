"""The claim width-helps: what it says, and its experiment at one point."""
