"""What is pickled and sent to Spark's Python workers. Imports no pyspark."""

import os

from coincide.model.errors import Words

IN_WORKER = any(name.startswith("PYTHON_WORKER_FACTORY_") for name in os.environ)
"""Whether this process was started by Spark to run Python."""

# Spark hands errors of workers on as text, which the driver then words for its front end.
Words.keep_marks = IN_WORKER
