"""Forms of the texts in chips' and boards' files, by where a text goes: command lines, paths,
linker scripts, C and CMake files.

A file from a stranger can name a bank, a flag or a source, and nothing that a compiler, a shell or
QEMU would take for more than that. Each text of an entry (`entries`) has one of these forms.
"""

from __future__ import annotations

from typing import Annotated

from toolchain.files.records import Form

Line = Annotated[str, Form(r".{1,120}", "one line of at most 120 printable characters")]
"""A text that people read, or that is looked up among names."""
Name = Annotated[
    str, Form(r"[A-Za-z][A-Za-z0-9_]{0,39}", "a letter, then letters, digits and _, 40 at most")
]
"""The name of a bank (a region of the linker script), a timing, a cache, a bus or a UART."""
Word = Annotated[
    str,
    Form(
        r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,59}",
        "letters, digits and . _ + -, a letter or digit first, 60 at most",
    ),
]
"""The name of a chip, a core, a family (a file), a machine of QEMU or a part in a tool's list."""
Macro = Annotated[
    str, Form(r"[A-Za-z_][A-Za-z0-9_]{0,59}", "the name of a macro in C, 60 characters at most")
]
MacroValue = Annotated[
    str, Form(r"[A-Za-z0-9_]{1,60}", "a number or a name in C, 60 characters at most")
]
Flag = Annotated[
    str,
    Form(
        r"-m(cpu|fpu|float-abi|arch)=[a-z0-9][a-z0-9.+-]{0,59}|-mthumb|-mcmse"
        r"|-D[A-Za-z_][A-Za-z0-9_]{0,59}(=[A-Za-z0-9_]{1,60})?",
        "one of -mcpu=, -march=, -mthumb, -mfpu=, -mfloat-abi=, -mcmse and -DNAME=VALUE, "
        "the flags that tell gcc of a core",
    ),
]
Source = Annotated[
    str,
    Form(
        r"([A-Za-z0-9_-]{1,60}/){1,3}[A-Za-z0-9_-]{1,60}\.c",
        "a C file below runtime_c/firmware, as stm32/l4.c",
    ),
]
ToolText = Annotated[
    str,
    Form(
        r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_.+:-]*([/ ][A-Za-z0-9][A-Za-z0-9_.+:-]*){0,7}",
        "names of the tool's own, without .., an option or a path from the root",
    ),
]
"""An option of a flashing tool: files of openocd's own, a part, a USB identity, a loader."""
