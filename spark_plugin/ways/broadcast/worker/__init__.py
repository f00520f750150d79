"""What runs in Spark's Python workers beside a small side."""
