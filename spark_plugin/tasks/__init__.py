"""What is pickled and sent to Spark's Python workers. Imports no pyspark."""
