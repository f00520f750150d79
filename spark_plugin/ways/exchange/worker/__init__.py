"""What runs in Spark's Python workers after the exchange."""
