"""The page that shows a report: one HTML file without references to anything outside it."""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

# They form one script, so that one hash admits it; each uses only those before it.
SCRIPTS = (
    "text.js",
    "store.js",
    "report.js",
    "charts.js",
    "overview.js",
    "filters.js",
    "list.js",
    "strip.js",
    "tokens.js",
    "group.js",
    "trace.js",
    "compare.js",
    "keys.js",
    "main.js",
)


def static_page(document: Mapping[str, Any], chunks: Iterable[Sequence[Mapping[str, Any]]]) -> str:
    """A report as one HTML file.

    Args:
        document: what the page shows, without the traces of the episodes.
        chunks: traces in the order of the episodes, ``document["chunk_size"]`` to a chunk; they are unpacked one by
            one, when an episode is opened.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    data = [_enclosed("document", document)]
    data += [_enclosed(f"chunk-{number}", chunk) for number, chunk in enumerate(chunks)]
    return _page(data="\n".join(data), connect="'none'")


def live_page() -> str:
    """The same page without data: it asks the server that it came from, and goes on asking while a run grows."""
    return _page(data="", connect="'self'")


def _page(data: str, connect: str) -> str:
    script = f'(() => {{\n"use strict";\n{"".join(map(_asset, SCRIPTS))}}})();\n'
    style = _asset("style.css")
    # Only this script and this style run, nothing is fetched from elsewhere, and the script itself cannot turn text
    # into markup (trusted types).
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; connect-src {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Template(_asset("page.html")).substitute(policy=policy, style=style, script=script, data=data)


def _asset(name: str) -> str:
    return files("manyturn.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _enclosed(name: str, content: object) -> str:
    """JSON as an element that a browser does not run; base64 holds nothing that could end the element."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise ValueError(f"{name} of the report cannot be JSON ({error}): unknown numbers are None") from error
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'
