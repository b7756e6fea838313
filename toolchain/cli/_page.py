"""`--html FILE`: the page of a result; what `report` and other commands put into it."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from toolchain.cli._output import write_text
from toolchain.cycles.reading import hot_loops
from toolchain.deployment.compile import Compiled, compiled_json
from toolchain.deployment.folder import PLAN_FILE, compiled_model
from toolchain.deployment.profile import Profile, profile_json
from toolchain.device.firmware import MANIFEST, load_firmware
from toolchain.files.records import read_json
from toolchain.page.build import Findings, build, document
from toolchain.page.charts import PACKAGE, version
from toolchain.page.document import Build
from toolchain.page.render import page
from toolchain.report.annotate import annotated_json
from toolchain.version import DISTRIBUTION

MOST_BUILDS = 2
"""Builds that a page shows side by side."""
_LOOPS = 12
"""Hot loops that a page holds."""


def facts(*files: Path) -> tuple[tuple[str, str], ...]:
    """Versions, and the size and SHA-256 of each file."""
    try:
        thimble = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        thimble = "not installed"
    rows = [
        ("Thimble", thimble),
        ("Python", platform.python_version()),
        (PACKAGE, version()),
    ]
    for file in files:
        if file.is_file():
            data = file.read_bytes()
            rows.append((file.name, f"{len(data):,} B, SHA-256 {hashlib.sha256(data).hexdigest()}"))
    return tuple(rows)


def command_line() -> str:
    """The command line as it was typed."""
    return shlex.join(["thimble", *sys.argv[1:]])


def compiled_findings(compiled: Compiled, model: Path, **more: Any) -> Findings:
    """Findings of a model that was just compiled."""
    return Findings(
        plan=compiled_json(compiled.plan, compiled.sizes, compiled.sources.stack),
        sections=None if compiled.sizes is None else asdict(compiled.sizes),
        facts=facts(model),
        **more,
    )


def folder_findings(folder: Path) -> Findings:
    """Findings of a folder that `thimble compile` wrote. Raises InputError where it is none."""
    compiled_model(folder)
    firmware = (folder / MANIFEST).exists()
    return Findings(
        plan=read_json(folder / PLAN_FILE),
        sections=asdict(load_firmware(folder).sizes) if firmware else None,
        label=str(folder),
        facts=facts(folder / "firmware.elf"),
    )


def profiled_findings(folder: Path, profiles: Sequence[Profile]) -> Iterator[Findings]:
    """Findings of a compiled folder for each profile: a build of the board as which its trace was
    read."""
    compiled = folder_findings(folder)
    for profile in profiles[:MOST_BUILDS]:
        yield with_profile(compiled, profile)


def with_profile(findings: Findings, profile: Profile) -> Findings:
    """The findings with a profile and its hottest loops."""
    names = {i: part.name for i, part in enumerate(profile.operators)}
    loops = hot_loops(profile.reading, _LOOPS) if profile.reading else ()
    fields = {**profile_json(profile), "loops": annotated_json(loops, names)}
    notes = (f"No cycles: {profile.no_cycles}.",) if profile.no_cycles else ()
    if profile.board != profile.ran_on:
        notes = (*notes, f"Ran on {profile.ran_on}; its time is that of {profile.board}.")
    return replace(findings, profile=fields, notes=(*findings.notes, *notes))


def with_accuracy(findings: Findings, fields: Mapping[str, Any]) -> Findings:
    """The findings with the figures of `thimble accuracy`, and where they were measured."""
    on, ran_on = fields["board"], fields["ran_on"]
    stood = () if on == ran_on else (f"Labelled data ran on {ran_on}, not {on}.",)
    return replace(findings, accuracy=fields, notes=(*findings.notes, *stood))


def write_page(target: str, builds: Sequence[Build]) -> int:
    """Write the page of one build or two, and return its bytes. Raises InputError."""
    text = page(document(builds, command_line()))
    write_text(target, text)
    return len(text.encode())


def write_findings(target: str, findings: Findings) -> None:
    """Write the page of one build."""
    write_page(target, [build(findings)])
