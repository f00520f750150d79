"""The direct way: tasks read their own row groups of Parquet files that lie in time order.

No exchange, no JVM between the files and the kernels. Spark or one process runs the slices.
"""
