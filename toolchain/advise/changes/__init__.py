"""Changes of a network: each file with one `CHANGE` (`advise.change`) is one; its name is the
file's."""
