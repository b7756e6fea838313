"""Operators as they are read: none in the form of an old opset, none that computes on integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from toolchain.errors import InputError
from toolchain.frontends.onnx.model import OLDEST_FORMS, FileModel, Node, names_of
from toolchain.frontends.onnx.operators import operator
from toolchain.frontends.onnx.operators.older import without
from toolchain.frontends.onnx.writing import Writer

Ranks = Callable[[], Mapping[str, int]]


def in_new_forms(model: FileModel, ranks: Ranks) -> FileModel:
    """The model with every operator in the form of opset 13 or later.

    The softmaxes of opsets below 13 are left as they are: they depend on the file's opset. `ranks`
    gives the number of dimensions of each tensor that it can tell; it is called at most once, for
    forms that only opsets below 7 have. Raises InputError for an operator that has no new form.
    """
    if model.opset >= OLDEST_FORMS:
        return model
    ranks = cache(ranks)

    def write(writer: Writer) -> None:
        older = operator(writer.node.operator).older
        if older is not None and model.opset < older.before:
            writer.ranks = ranks
            older.convert(writer)
        if not writer.nodes:
            writer.put(without(writer.node))

    return _rewritten(model, write)


def without_integers(model: FileModel) -> FileModel:
    """The model without QLinear operators. Raises InputError where one lacks an input."""

    def write(writer: Writer) -> None:
        node = writer.node
        integers = operator(node.operator).integers
        if integers is None:
            writer.put(node)
            return
        try:
            integers(writer)
        except (IndexError, ValueError) as error:
            raise InputError(f"{node} has only {len(node.inputs)} inputs") from error

    return _rewritten(model, write)


def _rewritten(model: FileModel, write: Callable[[Writer], None]) -> FileModel:
    constants, names = dict(model.constants), names_of(model)
    nodes: list[Node] = []
    for node in model.nodes:
        writer = Writer(node, constants, model.opset, names)
        write(writer)
        nodes += writer.nodes
    return replace(model, nodes=tuple(nodes), constants=constants)
