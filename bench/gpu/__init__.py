"""The parts of ``bench run gpu``: what is compared, and what is timed. None needs Java, Spark or typer."""
