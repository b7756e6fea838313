"""`platformio`: a library with a library.json (PlatformIO's documentation, "library.json")."""

from __future__ import annotations

import json

from toolchain.export.carried import Carried
from toolchain.export.exporter import URL, Exporter, Files, rendered

_LINES = (
    "Put this folder into `lib/` of your project, or name it in `lib_deps`; its headers are found.",
    f"Before you publish it, put your addresses in place of {URL} in library.json.",
    "`pio pkg pack` makes an archive of it; `examples/` has a program for frameworks with stdio.",
)


def _files(carried: Carried) -> Files:
    flags = ["-O2", "-I src", *(f"-D{definition}" for definition in carried.definitions)]
    names = ", ".join(model.name for model in carried.models)
    manifest = {
        "name": carried.name,
        "version": "1.0.0",
        "description": f"{names}: exported by Thimble, for a {carried.core}",
        "keywords": ["neural network", "int8", carried.core],
        "authors": [{"name": "exported by Thimble", "maintainer": True}],
        "license": "Apache-2.0",
        "homepage": URL,
        "repository": {"type": "git", "url": f"{URL}{carried.name}.git"},
        "headers": [f"{model.name}.h" for model in carried.models],
        "frameworks": "*",
        "platforms": "*",
        "build": {"flags": flags, "includeDir": "include", "srcDir": "src"},
    }
    return {
        **carried.tree(),
        **carried.licences,
        "library.json": json.dumps(manifest, indent=2) + "\n",
        "examples/run_once/main.c": rendered("main.c.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="PlatformIO", lines=_LINES),
    }


EXPORTER = Exporter("platformio", "a library for PlatformIO", _files)
