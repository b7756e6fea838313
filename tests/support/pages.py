"""Values of pages, and a browser that opens them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
HOSTILE = (
    """</script><img src=x onerror="document.title='taken'"><script>document.title='taken'//"""
)
"""A name that ends the element that it stands in, and marks the page if it is taken as HTML."""


def hostile_plan(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A plan with HOSTILE in the name of its model and of each operator and tensor."""
    text = json.dumps(fields)
    names = {op["name"] for op in fields["operators"]} | fields["tensors"].keys()
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(json.dumps(name)[:-1], json.dumps(HOSTILE + name)[:-1])
    return {**json.loads(text), "model": HOSTILE}


def browser(dark: bool = False) -> Any:
    """Debian's Chromium without a window; the test is skipped where it is missing.

    A page is opened with the colours of the scheme; messages of its console are kept.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        pytest.skip("there is no browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    opened = webdriver.Chrome(options=options, service=service)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    return opened
