"""`thimble export --for cmsis-pack`: the pack's description, its archive, its csolution example.

Schemas are looked for where environment variables say: THIMBLE_PACK_XSD is PACK.xsd of
Open-CMSIS-Pack-Spec, THIMBLE_CSOLUTION_SCHEMAS the folder tools/projmgr/schemas of
Open-CMSIS-Pack/devtools.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from toolchain import export_models
from toolchain.boards import board
from toolchain.errors import InputError
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
BOARD = "f746g-disco"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pack") / "out"
    return export_models([DIGITS], "cmsis-pack", out, BOARD, name="digits").folder


def description(folder: Path) -> ElementTree.Element:
    return ElementTree.parse(folder / "Thimble.digits.pdsc").getroot()


def listed(folder: Path, category: str) -> list[ElementTree.Element]:
    return [f for f in description(folder).iter("file") if f.attrib["category"] == category]


def test_the_archive_holds_the_folder_and_has_the_same_bytes_again(
    folder: Path, tmp_path: Path
) -> None:
    pack = folder / "Thimble.digits.1.0.0.pack"
    again = export_models([DIGITS], "cmsis-pack", tmp_path / "out", BOARD, name="digits").folder
    assert (again / pack.name).read_bytes() == pack.read_bytes()
    with zipfile.ZipFile(pack) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    assert set(held) == set(files) - {pack.name, ".thimble.json"}
    assert all(held[name] == files[name].read_bytes() for name in held)


def test_its_description_names_what_is_there(folder: Path) -> None:
    named = {f.attrib["name"] for f in description(folder).iter("file")}
    assert all((folder / name).exists() for name in named)
    c_files = {f.attrib["name"] for f in listed(folder, "sourceC")}
    assert c_files == {p.relative_to(folder).as_posix() for p in (folder / "src").rglob("*.c")}
    accepted = [e.attrib for e in description(folder).iter("accept")]
    assert {"Dcore": "Cortex-M7"} in accepted and {"Dcore": "Cortex-M3"} not in accepted
    assert (folder / description(folder).findtext("license", "")).is_file()


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
def test_its_component_compiles_with_what_it_says(folder: Path, tmp_path: Path) -> None:
    """With its include folders alone; macros and optimisation are in the files."""
    core = [f for f in board(BOARD).compiler_flags if not f.startswith("-D")]
    assert core != list(board(BOARD).compiler_flags)
    include = [f"-I{folder / f.attrib['name']}" for f in listed(folder, "include")]
    sources = [str(folder / f.attrib["name"]) for f in listed(folder, "sourceC")]
    command = ["arm-none-eabi-gcc", *core, "-Os", "-Wall", "-Werror", *include, "-c", *sources]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    kernel = (folder / "src" / "kernels" / "thimble_softmax_s8.c").read_text()
    assert '#pragma GCC optimize("O2")' in kernel and "#define THIMBLE_DUAL_ISSUE 1" in kernel


def test_pack_xsd_finds_nothing_wrong(folder: Path, tmp_path: Path) -> None:
    schema = os.environ.get("THIMBLE_PACK_XSD", "")
    if not schema:
        pytest.skip("needs $THIMBLE_PACK_XSD, schema/PACK.xsd of Open-CMSIS-Pack-Spec")
    xmlschema = pytest.importorskip("xmlschema")
    rules = xmlschema.XMLSchema(schema)
    rules.validate(str(folder / "Thimble.digits.pdsc"))
    text = (folder / "Thimble.digits.pdsc").read_text()
    wrong = tmp_path / "wrong.pdsc"
    wrong.write_text(text.replace('category="sourceC"', 'category="C"'))
    assert not rules.is_valid(str(wrong))


@pytest.mark.parametrize("kind", ["csolution", "cproject"])
def test_csolutions_schema_finds_nothing_wrong(kind: str, folder: Path) -> None:
    schemas = os.environ.get("THIMBLE_CSOLUTION_SCHEMAS", "")
    if not schemas:
        pytest.skip("needs $THIMBLE_CSOLUTION_SCHEMAS, tools/projmgr/schemas of devtools")
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    yaml = pytest.importorskip("yaml")
    rules = json.loads((Path(schemas) / f"{kind}.schema.json").read_text())
    common = json.loads((Path(schemas) / "common.schema.json").read_text())
    resource = referencing.Resource.from_contents(common)
    beside = rules["$id"].rsplit("/", 1)[0] + "/common.schema.json"
    registry = referencing.Registry().with_resources(
        [(common["$id"], resource), (beside, resource)]
    )
    check = jsonschema.Draft7Validator(rules, registry=registry)
    read = yaml.safe_load((folder / "example" / f"digits.{kind}.yml").read_text())
    check.validate(read)
    with pytest.raises(jsonschema.ValidationError):
        check.validate(read | {"unknown": 1})


def test_the_example_names_the_component(folder: Path) -> None:
    yaml = pytest.importorskip("yaml")
    component = description(folder).find("components/component")
    assert component is not None
    parts = [component.attrib[key] for key in ("Cclass", "Cgroup", "Csub")]
    project = yaml.safe_load((folder / "example" / "digits.cproject.yml").read_text())["project"]
    wanted = {"component": "Thimble::" + ":".join(parts)}
    assert wanted in project["components"]
    (example,) = description(folder).iter("environment")
    assert (folder / "example" / example.attrib["load"]).is_file()


def test_it_is_for_an_arm_processor(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="packs are for Arm's processors"):
        export_models([DIGITS], "cmsis-pack", tmp_path / "out", "host")
    assert not (tmp_path / "out").exists()
