"""Table of a host under hostile messages, from the result of ``host_robustness.py``; docs/host-safety.md has it.

python -m benchmarks.serving.host_robustness_table
"""

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.kit.provenance import RESULTS
from benchmarks.kit.table import table

OUT = RESULTS / "hostile_host.json"

ENDINGS = ("refused", "hung up", "left half-sent", "no end in a minute", "unread")
_SUBJECTS = {
    "sizes": "one message of 1 to 300 MB",
    "paths": "arguments that name files and programs",
    "FIFOs": "arguments that name a FIFO",
    "devices": "arguments that name a device without an end",
    "layers": "harmless arguments with numbers that no machine can build",
    "half-sent": "heads, bodies and messages that never end",
    "garbage": "bytes that are no HTTP",
    "binary": "random bytes",
    "deep JSON": "100,000 levels of nesting, or as many digits",
    "nonsense": "messages of the wire that make no sense",
    "headers": "foreign names, huge heads, two lengths",
}


def hostile_table(result: Mapping[str, Any]) -> str:
    """The table in Markdown: how the messages of each kind ended."""
    rows = list[tuple[str, ...]]()
    for kind, counts in result["endings"].items():
        merged = dict.fromkeys(ENDINGS, 0)
        for ending, count in counts.items():
            merged[ending.partition(":")[0]] += count
        rows.append((_SUBJECTS[kind], *(str(merged[name] or "") for name in ENDINGS)))
    return table(("messages", *ENDINGS), rows)


if __name__ == "__main__":
    print(hostile_table(json.loads(OUT.read_text())))
