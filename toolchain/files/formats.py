"""The versions of all files that Thimble writes and reads again, or that its users write for it.

A version goes up where an earlier Thimble would misread the file; a field that it may overlook
needs none. Files of all versions from `oldest` on are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import InputError
from toolchain.files.records import field_of, read_toml


@dataclass(frozen=True)
class Format:
    """A kind of file. `name`: as the file itself tells it, '' where it does not; `version`: that
    which is written; `oldest`: the first that is still read; `way_on`: how a user comes by a file
    of this version.
    """

    name: str
    version: int
    way_on: str
    oldest: int = 1

    def check(self, found: int, where: str) -> None:
        """Raise InputError, with the way on, for a version that this Thimble does not read."""
        if self.oldest <= found <= self.version:
            return
        several = self.oldest < self.version
        known = f"{self.oldest} to {self.version}" if several else str(self.version)
        newer = found > self.version
        way = f"upgrade Thimble, or {self.way_on}" if newer else self.way_on
        raise InputError(
            f"{where} is of version {found}; this Thimble reads {known}: "
            f"{'a newer' if newer else 'an earlier'} Thimble wrote it: {way}"
        )

    def check_fields(self, fields: Mapping[str, Any], where: str, *, default: Any = None) -> None:
        """As `check`, for the field `version` of a document; where it is missing it is `default`,
        and an error without one.
        """
        given = fields if default is None else {"version": default, **fields}
        self.check(field_of(given, "version", int, where), where)


JSON = Format("", 1, "run the command again with --json")
"""All documents of --json. The version goes up where a field goes away, or means something else."""
FOLDER = Format("thimble-output", 1, "move what you need, delete the folder, and make it again")
"""A folder of results: the list in it, and all other files there that commands read."""
PIPELINE = Format("thimble-edgetpu-pipeline", 1, "split the model again")
RATES = Format("thimble-edgetpu-rates", 1, "plan the models again")
PIPELINE_PROFILE = Format("thimble-edgetpu-profile", 1, "profile the pipeline again")
CONTACT = Format("thimble-contact", 1, "visit the board again")
MEASUREMENTS = Format("thimble-measurements", 2, "export again with the same version on both ends")
DATABASE = Format("", 3, "set THIMBLE_MEASUREMENTS to another file")
SWEEP_RESULTS = Format("", 1, "name another file with --out, to begin anew")
WEIGHTS = Format("", 1, "make the blob again with `thimble weights`")
WRITTEN_BY_HAND = Format("", 1, "write the file as docs say, with `version = 1`")
"""bench.toml, board.toml, and the file of a sweep."""


def versioned_toml(file: Path, kind: Format) -> dict[str, Any]:
    """As `read_toml`, without the field `version`, which a file for version 1 may leave out.

    Raises InputError for a version that is not read.
    """
    data = read_toml(file)
    kind.check_fields(data, str(file), default=1)
    data.pop("version", None)
    return data
