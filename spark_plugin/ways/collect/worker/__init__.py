"""What runs in Spark's Python workers on two small sides."""
