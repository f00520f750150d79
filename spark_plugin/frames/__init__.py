"""DataFrames as events: columns in SQL, the look at both sides, and the stage in which workers join."""
