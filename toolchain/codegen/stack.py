"""A model's header with the stack that its functions take, once the C is compiled."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from toolchain.codegen.environment import environment
from toolchain.ir import Sources, StackNeed


def with_stack(sources: Sources, need: StackNeed) -> Sources:
    """The sources with `<NAME>_STACK_BYTES` in the header, which `generate` left without. No C of
    the model reads it, so what was compiled stays what it is.
    """
    name = f"{sources.name}.h"
    text = sources.files[name].replace(_part(sources.name, None), _part(sources.name, need))
    files = MappingProxyType({**sources.files, name: text})
    return replace(sources, files=files, stack=need)


def _part(name: str, stack: StackNeed | None) -> str:
    template = environment().get_template("library/stack.h.j2")
    return template.render(NAME=name.upper(), stack=stack)
