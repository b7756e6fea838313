"""One exporter a file: its presence makes its name a value of `thimble export --for`."""
