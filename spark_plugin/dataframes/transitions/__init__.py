"""Region transitions of DataFrames, planned: events as wire rows, the stage."""
