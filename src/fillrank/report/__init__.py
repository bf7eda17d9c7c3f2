"""Pictures: plots as functions, and the report."""
