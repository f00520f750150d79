"""``python -m bench``."""


def main() -> None:
    """Run the command line; on a machine with no more than the kernels need, the part for that."""
    try:
        from bench.command_line import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("rich", "typer"):
            raise
        from bench.bare import run_gpu

        run_gpu()
    else:
        app(prog_name="python -m bench")


if __name__ == "__main__":
    main()
