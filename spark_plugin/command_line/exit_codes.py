"""How the command ends."""

DONE = 0
OUR_FAILURE = 1
BAD_USE = 2
INTERRUPTED = 130
"""128 plus the number of SIGINT, as shells count."""
TERMINATED = 143
"""128 plus the number of SIGTERM."""
READER_GONE = 141
"""128 plus the number of SIGPIPE: who read standard output has enough."""
