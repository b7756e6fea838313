"""Texts from files in what is generated: one function for each place where they go."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from toolchain.files.printable import printable

_LONGEST_IN_COMMENT = 60
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")


def escape(text: str) -> str:
    """Printable ASCII: every other character, and the backslash, as a Python escape."""
    return text.encode("unicode_escape", "backslashreplace").decode("ascii")


def c_comment(text: str, longest: int = _LONGEST_IN_COMMENT) -> str:
    """`text` for the inside of a C comment: one line of ASCII that cannot end or open a comment.

    Trigraphs are broken up. Long text loses its middle; of names joined by semicolons, as
    TensorFlow joins those of fused operators, the first and the last stay.
    """
    safe = escape(text).replace("*/", r"*\/").replace("/*", r"/\*")
    safe = re.sub(r"\?(?=\?)", r"?\\", safe)
    if len(safe) <= longest:
        return safe
    parts = safe.split(";")
    if len(parts) > 1 and len(parts[0]) + len(parts[-1]) <= longest - 5:
        return f"{parts[0]};...;{parts[-1]}"
    half = (longest - 3) // 2
    return f"{safe[:half]}...{safe[-half:]}"


def c_string(text: str) -> str:
    """`text` as a C string literal of UTF-8 bytes."""
    characters = []
    for byte in text.encode("utf-8", "surrogatepass"):
        character = chr(byte)
        if 32 <= byte < 127 and character not in '"\\?':
            characters.append(character)
        else:
            characters.append(f"\\{byte:03o}")
    return '"' + "".join(characters) + '"'


def line_comment(text: str) -> str:
    """For a comment that ends with its line (`#` of CMake, YAML, make and shells): printable ASCII
    that does not begin a bracket comment of CMake's.
    """
    return escape(text).replace("[", "(").replace("]", ")")


def cmake_string(text: str) -> str:
    """A quoted argument of CMake's: no variable, no list, no end of it."""
    return '"' + re.sub(r'([\\"$;#@])', r"\\\1", text.replace("\n", "\\n")) + '"'


def json_string(text: str) -> str:
    """A string of JSON, in ASCII."""
    return json.dumps(text)


def markdown(text: str) -> str:
    """One line of Markdown that is read as it is written: no markup, no HTML, no link."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    safe = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", safe)


def xml_text(text: str) -> str:
    """The content of an element of XML, as a picture (SVG) has it."""
    return html.escape(printable(text))


FILTERS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "c_comment": c_comment,
        "c_string": c_string,
        "cmake_string": cmake_string,
        "json_string": json_string,
        "line_comment": line_comment,
        "markdown": markdown,
        "xml_text": xml_text,
    }
)
"""By the names that templates have for them. A linker script's comments are those of C."""
