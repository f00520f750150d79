"""The device: whether one can be used, its memory, and the way to it and back."""
