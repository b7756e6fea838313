"""The fuzzer's damaged documents are those of their numbers, whatever was damaged before."""

from __future__ import annotations

import json
import random

from benchmarks.fuzz.documents import changed_json

DOCUMENT = json.dumps({"rows": [1, 2.5, [], {}], "name": "x", "nested": {"a": {"b": [3]}}})


def test_changes_follow_from_the_number_alone() -> None:
    first = [changed_json(DOCUMENT, random.Random(number)) for number in range(3000)]
    again = [changed_json(DOCUMENT, random.Random(number)) for number in reversed(range(3000))]
    assert first == again[::-1]
    assert len(set(first)) > 1000
