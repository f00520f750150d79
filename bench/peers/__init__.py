"""The same join as others would write it: DuckDB, Spark SQL, Polars, and a naive kernel."""
