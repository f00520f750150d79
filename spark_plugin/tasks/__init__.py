"""What is pickled and sent to Spark's Python workers. Imports no pyspark."""

import os

from coincide.model.errors import Words

IN_WORKER = "SPARK_BUFFER_SIZE" in os.environ

# Spark hands errors of workers on as text, which the driver then words for its front end.
Words.keep_marks = IN_WORKER
