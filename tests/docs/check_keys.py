#!/usr/bin/env python3
"""Fails and names each key of a config that no document explains: neither as `section.key`, nor as `key` in code.
usage: check_keys.py ROOT WEFT"""
import json
import pathlib
import re
import subprocess
import sys

root, weft = pathlib.Path(sys.argv[1]), sys.argv[2]
schema = json.loads(subprocess.run([weft, "config", "--schema"], check=True, capture_output=True).stdout)
text = "".join(path.read_text() for path in [root / "README.md", *(root / "docs").glob("*.md")])


def keys(node, path):
    for name, inner in node.get("properties", {}).items():
        yield path + [name]
        for form in [inner, *inner.get("oneOf", []), *inner.get("anyOf", [])]:
            yield from keys(form, path + [name])


missing = sorted({".".join(path) for path in keys(schema, [])
                  if not re.search(rf"\b{re.escape('.'.join(path))}\b|`{re.escape(path[-1])}(`| =)|\b{re.escape(path[-1])} = ", text)})
if missing:
    sys.exit("keys that no document explains: " + " ".join(missing))
