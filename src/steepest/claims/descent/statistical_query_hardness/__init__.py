"""The claim statistical-query-hardness."""
