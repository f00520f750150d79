"""What a hunt takes on the command line."""

from bench.experiment import Option

OPTIONS = {
    "cases": Option(int | None, None, "So many cases.", 1),
    "seconds": Option(float | None, None, "For so long."),
    "seed": Option(int, 0, "What all chance comes from."),
    "start": Option(int, 0, "Number of the first case."),
    "case": Option(int | None, None, "The case of this number alone, told in full."),
}
