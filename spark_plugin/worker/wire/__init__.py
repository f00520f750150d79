"""How events cross from the JVM to the worker and results cross back."""
