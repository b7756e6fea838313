"""Hypothesis strategies for memory and arena problems."""

from __future__ import annotations

from hypothesis import strategies as st

from toolchain.ir import (
    ArenaProblem,
    Block,
    Buffer,
    LiveRun,
    Member,
    MemoryProblem,
    Overlap,
    SharedPair,
)


@st.composite
def memory_problems(draw: st.DrawFn, max_ops: int = 8) -> MemoryProblem:
    """A random DAG whose operators each write one or two buffers and read earlier ones."""
    count = draw(st.integers(1, max_ops))
    sizes, leads = st.integers(1, 12), st.integers(-3, 4)
    buffers = [Buffer("input", draw(sizes), (Member("input"),), from_start=True)]
    writer: list[int | None] = [None]
    uses, predecessors, overlaps = [], [], []
    for op in range(count):
        known = len(buffers)
        read = draw(st.sets(st.integers(0, known - 1), min_size=0, max_size=min(3, known)))
        born = draw(st.integers(1, 2))
        for port in range(born):
            name = f"t{op}.{port}"
            output = draw(st.integers(0, 9)) == 0
            buffers.append(Buffer(name, draw(sizes), (Member(name),), to_end=output))
            writer.append(op)
        uses.append(tuple(sorted(read | set(range(known, known + born)))))
        before = {writer[b] for b in read}
        predecessors.append(tuple(sorted(b for b in before if b is not None)))
        for source in sorted(read):
            if draw(st.integers(0, 2)) == 0:
                overlaps.append(Overlap(op, source, known, draw(leads), draw(st.booleans())))
    return MemoryProblem(
        ops=tuple(f"op{i}" for i in range(count)),
        predecessors=tuple(predecessors),
        uses=tuple(uses),
        scratch_bytes=tuple(draw(st.sampled_from([0, 0, 0, 3])) for _ in range(count)),
        buffers=tuple(buffers),
        overlaps=tuple(overlaps),
    )


@st.composite
def arena_problems(draw: st.DrawFn, max_blocks: int = 12) -> ArenaProblem:
    """Blocks with random lifetimes, some live in part, and pairs that share bytes at some step:
    that at which the one dies and the other is born, or where both change."""
    blocks, sizes = [], st.integers(1, 20)
    for index in range(draw(st.integers(1, max_blocks))):
        start, steps, size = draw(st.integers(0, 8)), draw(st.integers(0, 4)), draw(sizes)
        profile: list[LiveRun] = []
        if steps > 1 and draw(st.integers(0, 2)) == 0:
            for step in range(start, start + steps):
                bottom = draw(st.integers(0, size - 1))
                profile.append(LiveRun(step, bottom, draw(st.integers(bottom + 1, size))))
            size = max(run.top_bytes for run in profile)
        unit = draw(st.sampled_from([1, 4]))
        blocks.append(Block(f"b{index}", start, start + steps, size, unit, tuple(profile)))
    pairs = [
        SharedPair(a, b, step, draw(st.integers(-4, 5)), draw(st.booleans()))
        for a, dying in enumerate(blocks)
        for b, born in enumerate(blocks)
        for step in range(max(dying.start, born.start), min(dying.end, born.end))
        if a != b and dying.start < step and born.start <= step
        if (a < b and (dying.profile or born.profile)) or dying.end == born.start + 1 == step + 1
        if draw(st.booleans())
    ]
    return ArenaProblem(tuple(blocks), tuple(pairs))
