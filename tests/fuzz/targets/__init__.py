"""One module for each kind of file; `fuzz` says what a target has to provide."""
