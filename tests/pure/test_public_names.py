"""The Python interface. mypy reads this file, too: names have types through both packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import pytest

import thimble
import toolchain

if TYPE_CHECKING:
    from toolchain.deployment.verification import Verification
    from toolchain.memory.plan import Plan

    assert_type(thimble.plan_model("model.tflite", "host"), Plan)
    assert_type(toolchain.plan_model("model.tflite", "host"), Plan)
    assert_type(thimble.verify_model("model.tflite", "host"), Verification)
    thimble.plan_modle()  # type: ignore[attr-defined]
    toolchain.plan_modle()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", toolchain.__all__)
def test_both_packages_have_a_name(name: str) -> None:
    assert getattr(thimble, name) is getattr(toolchain, name)


def test_a_package_shows_its_public_names_and_nothing_else() -> None:
    assert dir(thimble) == dir(toolchain) == sorted(toolchain.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="plan_modle"):
        getattr(thimble, "plan_modle")  # noqa: B009 - mypy knows that it is not there


def test_the_version_is_the_distribution_s() -> None:
    from importlib.metadata import version

    assert thimble.__version__ == toolchain.__version__ == version("thimble-nn")
