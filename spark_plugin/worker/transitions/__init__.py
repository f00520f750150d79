"""Region transitions of Arrow data in one process: arguments, reading, open watches, rows and reports."""
