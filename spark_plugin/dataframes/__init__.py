"""DataFrames as events: columns, checks, the look at both sides, the stage."""
