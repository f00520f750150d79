"""The kernels and how they are launched. Nothing here imports CuPy: they run in Numba's CUDA simulator."""
