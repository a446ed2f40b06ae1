"""The official files: where they lie, which release they are of, and the two that are Python source.

Both benchmarks are under the MIT licence (sierra-research/tau-bench at 59a200c, sierra-research/tau2-bench at a2c0247).
None of their files come with this package; a folder may be a checkout of either, or hold its folders ``v1`` and ``v2``.
"""

import ast
import hashlib
import json
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.contract.registration.env_registry import NeedsSetup

CLONE = {
    "v1": "git clone https://github.com/sierra-research/tau-bench && git -C tau-bench checkout 59a200c",
    "v2": "git clone https://github.com/sierra-research/tau2-bench && git -C tau2-bench checkout a2c0247",
}
PLACES = {
    "v1": ("v1/{domain}", "tau_bench/envs/{domain}/data", "tau_bench/envs/{domain}", "{domain}"),
    "v2": ("v2/{domain}", "data/tau2/domains/{domain}", "data/tau2/{domain}", "{domain}"),
}
RELEASE = {  # git's names of the files' contents
    "v1/retail/orders.json": "77e34535e4cde09c21be706452947d267e74448f",
    "v1/retail/products.json": "dcde9b1beeea329cee6ce28d6b1e414a5284db3a",
    "v1/retail/users.json": "47ce9b4231a2881951a451d9bafc67c0c45f4403",
    "v1/retail/wiki.md": "2a23f004bbde6a5e3392585d0fedbb4ac2ee0a11",
    "v1/retail/tasks_dev.py": "aa5acf7f771b6e903bf795e436e03ee6ebe2c03d",
    "v1/retail/tasks_test.py": "d0e4936ef9d523c04debf4ecd9f6d92eb39923a0",
    "v1/retail/tasks_train.py": "4fe71adafdbae7b6683f9d5beb65275172699bb6",
    "v1/airline/flights.json": "ecfc0351cb211cf2601317f14c6dd105ee163a30",
    "v1/airline/reservations.json": "d3e77598bf90486a2805a19332996ec9713295b5",
    "v1/airline/users.json": "3c611cebf115a65ffecaf8c7f362e007b4739228",
    "v1/airline/wiki.md": "1601b26472674661fc07b48940e86674854ff2e3",
    "v1/airline/tasks_test.py": "47f394333743aaa48292bd447977eae86e16ffe9",
    "v2/retail/db.json": "4d67b03b2d39ade5a7ab6facb2edd7ab3e013d48",
    "v2/retail/policy.md": "d127e6b074654926f337d0d98b0e669ebe90d19e",
    "v2/retail/split_tasks.json": "8b20704a17aa1940b1e58668f89dcef2ddaeeea3",
    "v2/retail/tasks.json": "e95a9f898b2d1f6568ea8faec78edc3767ce747d",
    "v2/airline/db.json": "c6a1e817aa9102c5822e83affb3595acbc312701",
    "v2/airline/policy.md": "8098be7db3f47de943fad39d1e057ede6cc6cd04",
    "v2/airline/split_tasks.json": "c83cce155671e66a6bf07450fd2845fe0eb1f229",
    "v2/airline/tasks.json": "ea4ff5e3f5e3d97ca391846a6e8dd9eb3437dc80",
    "v2/telecom/db.toml": "6c8a639d85896a049a5daf87332107a840a55aac",
    "v2/telecom/user_db.toml": "1def9a98eabf1d4a5fc95a67387ec294f56196d8",
    "v2/telecom/main_policy.md": "c55f5bd10c49a3d0b48f6e83a3168e6242fb2be7",
    "v2/telecom/main_policy_solo.md": "2da88ab26054dbd574e48353e54b4296f0e554dd",
    "v2/telecom/tech_support_manual.md": "b64a9f1433bfb62bdaf9e5c1d90c10e833b26c17",
    "v2/telecom/split_tasks.json": "a5b01687eaaa5c669f792bff33c0d6ec13be36fd",
    "v2/telecom/tasks.json": "6f41a5e3489e187fa247d729706509d8250a31c1",
    "v2/user_simulator/simulation_guidelines.md": "b55a28a1d5eaf81e72bdc263307d9f512fe49a99",
    "v2/user_simulator/simulation_guidelines_tools.md": "a7235b1ddf8d0d1e2edc9b1708916f37b0aac045",
}


class DataError(NeedsSetup):
    """The folder lacks a file, or a file is not what it should be; the text names the fix."""


class Files:
    """The files of one domain.

    Args:
        folder: a checkout of the benchmark, or a folder with ``v1/retail`` and so on; ``~`` is the home folder.
        version: ``v1`` for tau-bench, ``v2`` for tau2-bench.
        domain: such as ``retail``.
        pinned: refuse files that are not those of the release.

    Raises:
        DataError: there is no such folder.
    """

    def __init__(self, folder: str | Path | None, version: str, domain: str, pinned: bool = True):
        if folder is None:
            raise DataError(
                f'the files of tau-bench do not come with this package: "{CLONE[version]}" fetches them; then give '
                'data="FOLDER"'
            )
        self.root = Path(folder).expanduser().resolve()
        self.version, self.domain, self.pinned = version, domain, pinned
        if not self.root.is_dir():
            raise DataError(f'there is no folder {self.root}: "{CLONE[version]}" makes one')

    def find(self, name: str) -> Path | None:
        """The path of a file, None if it is not there."""
        places = (self.root / place.format(domain=self.domain) / name for place in PLACES[self.version])
        return next((file for file in places if file.is_file()), None)

    def read(self, name: str) -> bytes:
        """A file's content. Raises DataError if it is missing or, pinned, not of the release."""
        file = self.find(name)
        if file is None:
            folders = " or ".join(place.format(domain=self.domain) for place in PLACES[self.version])
            raise DataError(f'{self.root} has no {name} in {folders}: "{CLONE[self.version]}" fetches it')
        content, released = file.read_bytes(), RELEASE.get(f"{self.version}/{self.domain}/{name}")
        if self.pinned and released is not None and git_name(content) != released:
            raise DataError(
                f'{file} is not the file of the release: "{CLONE[self.version]}" fetches it; or give pinned=False, '
                "and scores are of another benchmark"
            )
        return content

    def text(self, name: str) -> str:
        return self._parsed(name, lambda content: content.decode("utf-8"))

    def json(self, name: str, kind: type = dict) -> Any:
        """A file that holds an object, or a list if that is the kind."""
        content = self._parsed(name, json.loads)
        if not isinstance(content, kind):
            raise self.unreadable(name, f"it holds a {type(content).__name__}, not a {kind.__name__}")
        return content

    def records(self, name: str) -> dict[str, dict[str, Any]]:
        """A file of records by id."""
        records = self.json(name)
        if not all(isinstance(record, dict) for record in records.values()):
            raise self.unreadable(name, "not all of its records are objects")
        return records

    def toml(self, name: str) -> Any:
        return self._parsed(name, lambda content: tomllib.loads(content.decode("utf-8")))

    def calls(self, name: str) -> list[Any]:
        """The list of a Python file ``NAME = [Task(...), ...]``, a dict of keywords for each call; nothing is run."""
        return self._parsed(name, _literal_list)

    def _parsed(self, name: str, parse: Any) -> Any:
        content = self.read(name)
        try:
            return parse(content)
        except (ValueError, RecursionError, SyntaxError, KeyError) as error:
            raise self.unreadable(name, error) from None

    def unreadable(self, name: str, why: Exception | str) -> DataError:
        what = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
        return DataError(f"{self.find(name)} is not as the benchmark's files are ({what:.200}): fetch it again")


def git_name(content: bytes) -> str:
    """The name that git gives a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _literal_list(content: bytes) -> list[Any]:
    tree = parse(content)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            return [_literal(element) for element in node.value.elts]
    raise ValueError("no list of tasks")


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Call(keywords=keywords):
            return {keyword.arg: _literal(keyword.value) for keyword in keywords}
        case ast.List(elts=elements):
            return [_literal(element) for element in elements]
        case ast.Dict(keys=keys, values=values):
            return {_literal(key): _literal(value) for key, value in zip(keys, values, strict=True) if key is not None}
    return ast.literal_eval(node)


def returned_literal(content: bytes) -> Any:
    """The literal that the function ``get_info`` of a Python file returns; nothing is run."""
    for node in ast.walk(parse(content)):
        if isinstance(node, ast.FunctionDef) and node.name == "get_info":
            return next(
                ast.literal_eval(step.value) for step in node.body if isinstance(step, ast.Return) and step.value
            )
    raise ValueError("no get_info")


def shared(make: Any) -> Any:
    """One object in a process for each folder, domain and choice: it is never changed after it is made."""
    return lru_cache(maxsize=16)(make)
