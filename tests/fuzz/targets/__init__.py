"""One module for each kind of file; see `fuzz` for what a target has to provide."""
