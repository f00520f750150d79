"""DataFrames as events: columns in SQL, the job that plans read, and the stage in which workers join."""
