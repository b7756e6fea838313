"""The graphs that operators hold (branches, bodies of loops) are rewritten, too.

Their ends stay as they are: the operator's own operands lie there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Graph
from toolchain.ops.control.body import Body, with_bodies
from toolchain.passes._pass import Pass, Prepared


@dataclass(frozen=True)
class RewriteNested:
    """`pipeline`: passes that leave a graph's ends alone."""

    pipeline: tuple[Pass, ...]

    def run(self, prepared: Prepared) -> Prepared:
        return prepared.with_graph(self._rewritten(prepared.graph))

    def _rewritten(self, graph: Graph) -> Graph:
        ops = [with_bodies(op, self._body) for op in graph.ops]
        return graph.with_ops(ops) if any(op.attributes.nested for op in ops) else graph

    def _body(self, body: Body) -> Body:
        prepared = Prepared(self._rewritten(body.graph))
        for step in self.pipeline:
            prepared = step.run(prepared)
        return replace(body, graph=prepared.graph, layout=None)
