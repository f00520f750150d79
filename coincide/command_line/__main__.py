"""`python -m coincide.command_line`."""

from coincide.command_line import main

if __name__ == "__main__":
    main()
