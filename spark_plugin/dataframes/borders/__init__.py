"""Border crossings of DataFrames, planned: readings as wire rows, queries collected, the stage."""
