"""Texts of others on a terminal and on a page: what is seen is what there is.

Names in model files, answers of devices, and what tools print are written by strangers. Escape
sequences would be obeyed by a terminal; controls of direction, and characters without width, make a
text look like another one (CVE-2021-42574).
"""

from __future__ import annotations

import unicodedata

_PICTURES = 0x2400
"""The picture of control character 0; those of the next follow (Unicode, Control Pictures)."""
_PICTURE_OF_DELETE = "\u2421"
_LAYOUT = "\n\t"
_UNSEEN = frozenset(("Cc", "Cf", "Cn", "Cs", "Zl", "Zp"))
"""Unicode's categories of controls, of formats (direction, zero width, byte order mark), of halves
of characters, of separators of lines and paragraphs, and of what is no character yet."""
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""


def printable(text: str) -> str:
    """`text` in which all is seen: control characters of ASCII are shown as their pictures, others
    that are not seen as Python escapes (`\\u202e`). New lines and tabs stay, and so does a text
    that is printable already.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_symbol, text))


def _symbol(character: str) -> str:
    if character in _LAYOUT:
        return character
    if unicodedata.category(character) not in _UNSEEN and character not in _BLANKS:
        return character
    if character < " ":
        return chr(_PICTURES + ord(character))
    if character == "\x7f":
        return _PICTURE_OF_DELETE
    return character.encode("unicode_escape").decode("ascii")
