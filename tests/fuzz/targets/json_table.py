"""Tables in JSON, and JSON lines."""

import json
from pathlib import Path

import fillrank as fr

SUFFIX = ".json"


def seeds() -> list[bytes]:
    records = [
        {"id": "a", "x": 1.5, "y": None},
        {"id": "b", "x": 2, "y": True},
        {"id": "c", "x": 3},
    ]
    split = {"columns": ["x", "y"], "index": ["a", "b"], "data": [[1, 2], [None, 4]]}
    shapes = [records, {"x": [1, None], "y": ["p", "q"]}, {"x": {"a": 1}, "y": {"b": 2}}, split]
    lines = "\n".join(map(json.dumps, records))
    return [
        *(json.dumps(shape).encode() for shape in (*shapes, [["a", "b"], [1, 2]])),
        lines.encode(),
    ]


def attempt(path: Path) -> None:
    fr.read(path)
