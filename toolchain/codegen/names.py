"""Names from model files made safe for C identifiers."""

from __future__ import annotations

import re
import unicodedata

from toolchain.errors import InputError

_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto
    if inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while asm typeof bool true false main and or not
    xor bitand bitor compl class new delete this template namespace operator private
    public protected friend virtual try catch throw using export explicit mutable
    and_eq or_eq xor_eq not_eq nullptr constexpr consteval constinit decltype noexcept
    alignas alignof concept requires typename typeid thread_local static_assert
    const_cast static_cast dynamic_cast reinterpret_cast wchar_t char8_t char16_t char32_t
    co_await co_return co_yield
"""
_HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath
    threads time uchar wchar wctype mem str is to
"""
_MACROS = "unix linux i386"
"""Names without an underscore that GCC defines as 1, unless it is told a standard."""
_SPACES = "span span_of std int8_t uint8_t int16_t int32_t int64_t size_t"
"""Names that C++ headers use inside a model's namespace."""
_RESERVED = frozenset(f"{_KEYWORDS} {_HEADERS} {_MACROS} {_SPACES}".split())
_RESERVED_PREFIXES = ("arm_", "thimble", "cmsis", "riscv_")
_HELPERS = ("_quantize", "_dequantize", "_uint8", "_quantize_all", "_dequantize_all", "_uint8_all")
_LONGEST_IDENTIFIER = 48


def identifier(text: str, fallback: str = "tensor") -> str:
    """A lower-case C identifier that resembles `text`: ASCII letters, digits, single underscores.

    It is no keyword of C or C++ and does not begin with a digit or an underscore.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_").lower()
    words = words[:_LONGEST_IDENTIFIER].rstrip("_") or fallback
    if words[0].isdigit():
        words = f"{fallback[0]}{words}"
    return f"{words}_" if words in _KEYWORDS.split() else words


def model_identifier(text: str) -> str:
    """A prefix for a model's symbols that is also safe as the file name of its header."""
    name = identifier(text, "model").rstrip("_")
    if name.endswith(("_weights", "_info")):
        name = f"{name}_model"
    if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
        return f"model_{name}"
    return name


def checked_name(name: str) -> str:
    """A name that the user gives to a model in C. Raises InputError if it cannot be one as it is.

    It becomes the prefix of every symbol and the name of the header, so it is never altered.
    """
    allowed = model_identifier(name)
    if name != allowed:
        raise InputError(
            f"--name {name!r} cannot name a model in C: it prefixes functions and names files, so "
            f"it is at most {_LONGEST_IDENTIFIER} lower-case letters, digits and single "
            "underscores, begins with a letter, and is no keyword, header of C or prefix of the "
            "kernels'",
            remedies=[f"--name {allowed}"],
        )
    return name


def tensor_identifier(text: str, direction: str) -> str:
    """The name behind `<model>_<direction>_` in the accessor of an input or output.

    Decorations of TensorFlow's exporters and the direction itself are left out.
    """
    short = re.sub(r":\d+$", "", text)
    short = re.sub(r"^serving_default_|^StatefulPartitionedCall(_\d+)?_?", "", short)
    name = identifier(short, "data")
    if name == direction:
        return "data"
    name = name.removeprefix(f"{direction}_")
    return f"{name}_tensor" if name.endswith(_HELPERS) else name


class Names:
    """Hands out each identifier once: the second `conv` becomes `conv_2`."""

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self._taken = set(taken)

    def unique(self, wanted: str) -> str:
        """`wanted`, with a number behind it where it is taken; it is taken from here on."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted.rstrip('_')}_{count}"
        self._taken.add(name)
        return name
