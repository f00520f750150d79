"""Border crossings of Arrow data in one process: arguments, queries, readings, rows and reports."""
