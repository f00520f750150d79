"""Every operator on Arrow tables in this process, without a JVM."""
