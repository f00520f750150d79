"""`python -m spark_plugin.command_line`."""

from spark_plugin.command_line import main

if __name__ == "__main__":
    main()
