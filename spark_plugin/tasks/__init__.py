"""What is pickled and sent to Spark's Python workers. Imports no pyspark."""

import os

from coincide.model.errors import Words

IN_WORKER = any(name.startswith("PYTHON_WORKER_FACTORY_") for name in os.environ)
"""Whether this process was started by Spark to run Python."""

MARKS_VARIABLE = "COINCIDE_MARKS"
"""Set to 1 in workers by a driver that words their errors for its front end.

Spark hands errors of workers on as text. Elsewhere users read this text, and copy lines from it, in which
marks would be characters that Python refuses.
"""

Words.keep_marks = IN_WORKER and os.environ.get(MARKS_VARIABLE) == "1"
