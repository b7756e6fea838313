"""The command `thimble`, and `python -m thimble`. To import `thimble` first says whose `toolchain`
it is.
"""

from toolchain.cli import main

if __name__ == "__main__":
    main()
