"""Files: untrusted ones, read with limits; and a user's results, written completely or not at all.

`records`, `arrays`, `tables`: JSON and TOML, NumPy files, .csv; errors name field or line.

`replaced_file`, `write_file`: one file. `files_digest`: the content of several. `replaced_folder`:
a folder with a list of its files, which later identifies it as Thimble's. `check_folder`: may it be
written? `check_whole`: is it complete? `is_listed`: is a file one of its own? `scratch_folder`: a
folder for the duration of a command. `is_scratch`: is a folder one of these?
"""

from toolchain.files._files import files_digest, replaced_file, write_file
from toolchain.files._folders import check_folder, check_whole, is_listed, replaced_folder
from toolchain.files._listing import MARKER
from toolchain.files._names import did_you_mean_beside, file_stem, free_name
from toolchain.files._scratch import is_scratch, scratch_folder

__all__ = [
    "MARKER",
    "check_folder",
    "check_whole",
    "did_you_mean_beside",
    "file_stem",
    "files_digest",
    "free_name",
    "is_listed",
    "is_scratch",
    "replaced_file",
    "replaced_folder",
    "scratch_folder",
    "write_file",
]
