"""Sessions, the RAPIDS Accelerator, credentials, the Python of workers."""
