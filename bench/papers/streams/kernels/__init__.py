"""The kernels of the stream correlators: Numba, one thread, no GIL. Arrays in, arrays out."""
