"""Arrow columns as the kernels want them, and back."""
