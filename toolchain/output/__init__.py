"""Everything that Thimble writes where a user asked for it: whole or not at all, never over others.

`replaced_file`, `write_file`: one file. `replaced_folder`: a folder with the list of its files, by
which it is known as ours later. `check_folder`: may it be written? `check_whole`: is it all there?
`is_listed`: is a file one of its own?
`scratch_folder`: a folder for the time of a command.
"""

from toolchain.output._files import replaced_file, write_file
from toolchain.output._folders import (
    MARKER,
    check_folder,
    check_whole,
    is_listed,
    replaced_folder,
)
from toolchain.output._names import file_stem, free_name
from toolchain.output._scratch import scratch_folder

__all__ = [
    "MARKER",
    "check_folder",
    "check_whole",
    "file_stem",
    "free_name",
    "is_listed",
    "replaced_file",
    "replaced_folder",
    "scratch_folder",
    "write_file",
]
