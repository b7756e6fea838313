"""`arduino`: a library for the Arduino IDE and arduino-cli: all code is below src/, the only folder
that they search for includes ("Library specification", 1.5 format)."""

from __future__ import annotations

from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, optimised, rendered

_LINES = (
    "Put this folder into `libraries/` of your sketchbook; the example is under File > Examples.",
    "Choose a board in the Arduino IDE whose core is the one above; "
    "its compiler's -Os is overruled by a pragma in every file here.",
)


def _files(carried: Carried) -> Files:
    tree = carried.tree(public="src", private="src")
    sketch = f"examples/{carried.name}_example/{carried.name}_example.ino"
    return {
        **optimised(tree, carried),
        **carried.licences,
        "library.properties": rendered("arduino/library.properties.j2", carried),
        sketch: rendered("arduino/example.ino.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="Arduino", lines=_LINES),
    }


EXPORTER = Exporter("arduino", "a library for the Arduino IDE, with a sketch", _files)
