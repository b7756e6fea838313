"""Which C files define a set of functions, and everything that those call.

The sources are read; there is no list, so another CMSIS-NN version works too. The answer is the
union over all `#if` branches; a linker that removes unused sections drops the rest. A function may
be an instance of a body that several types share: its file includes the body's header, with a macro
that expands to the function's name, which is the file's, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from toolchain.errors import MissingToolError

_COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_FUNCTION = re.compile(
    r"^(?P<type>[A-Za-z_][\w\s*()]*?)\b(?P<name>\w+)\s*\((?P<arguments>[^;{}()]*)\)\s*\{",
    re.MULTILINE,
)
_TABLE = re.compile(r"^(?P<type>[A-Za-z_][\w \t*]*?)\b(?P<name>\w+)\s*(?:\[[^\]]*\]\s*)+=", re.M)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<body>[^\n]*)", re.MULTILINE)
_PROTOTYPE = re.compile(r"\b(?P<name>\w+)\s*\((?P<arguments>[^;{}()]*)\)\s*;")
_CALLED = re.compile(r"arm_nn_\w+(?<!_t)")
"""A function of CMSIS-NN's support library, in our own kernels."""
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class CTree:
    """A folder of C: sources (with everything below it), and the folder to pass with `-I`.

    Headers among the sources are for these alone; what callers may include lies in `include`.
    """

    sources: Path
    include: Path

    def files(self) -> tuple[Path, ...]:
        return tuple(sorted(self.sources.rglob("*.c")))

    def headers(self) -> tuple[Path, ...]:
        return tuple(sorted(self.include.rglob("*.h")))

    def support(self) -> tuple[Path, ...]:
        return tuple(sorted(self.sources.rglob("*.h")))


@dataclass(frozen=True)
class Closure:
    """Files to compile, sorted, and the headers that declare the requested functions or define them
    inline.
    """

    files: tuple[Path, ...]
    headers: tuple[str, ...]


@dataclass(frozen=True)
class _Index:
    """`defined_in`: external symbol to file; `words`: all identifiers in a file.

    `parameters`: of each function that a header declares, as the header writes them.
    `inlines`: identifiers in the body of a header's inline function or macro; `declared_in` and
    `defined_inline`: function to the header's path below the include folder. `texts`: of each file,
    and of each inline function and macro by its name, without comments and with single blanks.
    """

    defined_in: Mapping[str, Path]
    words: Mapping[Path, frozenset[str]]
    texts: Mapping[Path | str, str]
    inlines: Mapping[str, frozenset[str]]
    declared_in: Mapping[str, str]
    defined_inline: Mapping[str, str]
    parameters: Mapping[str, tuple[str, ...]]


def _stripped(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    return _COMMENT_OR_STRING.sub(" ", text)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _body(text: str, start: int) -> str:
    """The text from `start` to the closing brace in the first column, `#if`s between included."""
    end = text.find("\n}", start)
    return text[start : end if end >= 0 else len(text)]


@cache
def _index(tree: CTree) -> _Index:
    defined_in: dict[str, Path] = {}
    words: dict[Path, frozenset[str]] = {}
    texts: dict[Path | str, str] = {}
    inlines: dict[str, frozenset[str]] = {}
    declared_in: dict[str, str] = {}
    defined_inline: dict[str, str] = {}
    parameters: dict[str, tuple[str, ...]] = {}
    for path in tree.files():
        text = _stripped(path)
        words[path], texts[path] = _words(text), _plain(text)
        for match in (*_FUNCTION.finditer(text), *_TABLE.finditer(text)):
            if (
                not {"static", "extern", "typedef"} & _words(match["type"])
                and match["type"].strip()
            ):
                defined_in.setdefault(match["name"], path)
        if any(match["body"].strip() == path.stem for match in _MACRO.finditer(text)):
            defined_in.setdefault(path.stem, path)  # an included body defines what it is named
    for path in (*tree.headers(), *tree.support()):
        text = _stripped(path)
        bodies = [(m["name"], _body(text, m.end())) for m in _FUNCTION.finditer(text)]
        bodies += [(m["name"], m["body"]) for m in _MACRO.finditer(text)]
        for name, body in bodies:
            inlines[name] = inlines.get(name, frozenset()) | _words(body)
            texts[name] = f"{texts.get(name, '')} {_plain(body)}"
    for path in tree.headers():
        text, name = _stripped(path), path.relative_to(tree.include).as_posix()
        for match in _FUNCTION.finditer(text):
            defined_inline.setdefault(match["name"], name)
        for match in _PROTOTYPE.finditer(text):
            declared_in.setdefault(match["name"], name)
            listed = tuple(" ".join(one.split()) for one in match["arguments"].split(","))
            parameters.setdefault(match["name"], listed)
    return _Index(
        MappingProxyType(defined_in),
        MappingProxyType(words),
        MappingProxyType(texts),
        MappingProxyType(inlines),
        MappingProxyType(declared_in),
        MappingProxyType(defined_inline),
        MappingProxyType(parameters),
    )


def defines(tree: CTree, function: str) -> bool:
    """Whether a file or a header of `tree` defines the function."""
    index = _index(tree)
    return function in index.defined_in or function in index.defined_inline


def declared(tree: CTree) -> frozenset[str]:
    """The functions that the headers of `tree` declare for a file of their own."""
    index = _index(tree)
    return frozenset(index.declared_in) - frozenset(index.defined_inline)


def parameters_of(function: str, tree: CTree) -> tuple[str, ...] | None:
    """The parameters of a function as a header of `tree` declares them; None if none does."""
    return _index(tree).parameters.get(function)


def parameter_names(function: str, tree: CTree) -> tuple[str, ...]:
    """The names of a function's parameters in their order, as a header of `tree` declares them; ()
    for one that `tree` does not define or no header declares.
    """
    declared = parameters_of(function, tree) if defines(tree, function) else None
    return tuple(_WORD.findall(one)[-1] for one in declared or ())


def source_closure(functions: Iterable[str], trees: Sequence[CTree]) -> Closure:
    """The files of `trees` that define `functions` and, transitively, what those refer to.

    A header may define a function inline. The first of `trees` is CMSIS-NN's. Raises
    MissingToolError naming the function and the folders if none of them defines it, or if a source
    of another tree calls a function of CMSIS-NN's that is not there.
    """
    indices = [_index(tree) for tree in trees]
    wanted = sorted(set(functions))
    headers: list[str] = []
    for name in wanted:
        if not any(name in (*i.defined_in, *i.defined_inline) for i in indices):
            folders = " nor ".join(str(tree.sources) for tree in trees)
            raise MissingToolError(
                f"no C file defines {name}: neither {folders}; "
                "point --cmsis-nn at the pinned CMSIS-NN version"
            )
        known = ({**i.defined_inline, **i.declared_in} for i in indices)
        headers += [paths[name] for paths in known if name in paths][:1]
    files, _ = _reached(wanted, indices)
    for index in indices[1:]:
        for path in sorted(files & set(index.words)):
            for name in sorted(w for w in index.words[path] if _CALLED.fullmatch(w)):
                if not any(name in (*i.defined_in, *i.inlines) for i in indices):
                    raise MissingToolError(
                        f"{path.name} calls {name}, which {trees[0].sources} does not have; "
                        "point --cmsis-nn at the pinned CMSIS-NN version"
                    )
    return Closure(tuple(sorted(files)), tuple(sorted(set(headers))))


def reached_text(functions: Iterable[str], tree: CTree) -> str:
    """All C of `tree` that the functions refer to, transitively: files, and the inline functions
    and macros of headers, without comments and with single blanks. Types are left out.
    """
    index = _index(tree)
    files, words = _reached(functions, [index])
    texts = [index.texts[path] for path in sorted(files)]
    return "\n".join(texts + [index.texts[word] for word in sorted(words & set(index.inlines))])


def _reached(
    functions: Iterable[str], indices: Sequence[_Index]
) -> tuple[frozenset[Path], frozenset[str]]:
    """The files that define the functions and what those refer to, and all identifiers there."""
    files: set[Path] = set()
    seen: set[str] = set()
    queue = list(functions)
    while queue:
        word = queue.pop()
        if word in seen:
            continue
        seen.add(word)
        for index in indices:
            queue += index.inlines.get(word, ())
            path = index.defined_in.get(word)
            if path is not None and path not in files:
                files.add(path)
                queue += index.words[path]
    return frozenset(files), frozenset(seen)
