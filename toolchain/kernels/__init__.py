"""Where the C sources of the kernels come from: CMSIS-NN, and Thimble's own."""
