"""The libraries that faults are put into: pinned releases under permissive licences, with tests of their own."""

import re
from dataclasses import dataclass

PYTEST_INI = "pytest.ini"
"""A file of ours at the top of every workspace: ids of tests and imports do not depend on where pytest is started."""
_INI_TEXT = "[pytest]\naddopts = -p no:cacheprovider\npythonpath = .\n"
_TEST = re.compile(r"(^|/)(tests?/|conftest\.py$|test_[^/]*$|[^/]*_test\.py$)")


@dataclass(frozen=True, slots=True)
class Library:
    """A release, and which of its files a workspace holds. Paths are below the workspace, a leading ``src/`` is cut.

    Attributes:
        name, version: as on the package index.
        licence: SPDX name, read from the release's own licence file.
        sha256: of the sdist; of a wheel's installed files, the hash of ``sources.fingerprint``.
        code: folders, with ``/``, and modules that make up the library: all that an agent's change may count in.
        tests: folders and files that test it.
        terms: path of the licence file.
        archive: name of the sdist; empty: the files are those of the package as it is installed.
        held_out: its tasks are for testing only.
    """

    name: str
    version: str
    licence: str
    sha256: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    terms: str = "LICENSE"
    archive: str = ""
    held_out: bool = False

    @property
    def pin(self) -> str:
        """The release as pip names it."""
        return f"{self.name}=={self.version}"

    def counts(self, path: str) -> bool:
        """True if a file is the library's code: no test, setting or start-up file, nor one that shadows a module.

        Args:
            path: below the workspace, with ``/``.
        """
        if any(part in ("", ".", "..", "__pycache__") for part in path.split("/")):
            return False
        return path.endswith(".py") and _below(path, self.code) and not self.grades(path)

    def grades(self, path: str) -> bool:
        """True if a file decides the results of the tests."""
        return path == PYTEST_INI or _below(path, self.tests) or _TEST.search(path) is not None

    def holds(self, path: str) -> bool:
        """True if a workspace has this file of the release."""
        if not self.archive and _TEST.search(path):
            return _below(path, self.tests)
        return path == self.terms or _below(path, self.code) or _below(path, self.tests)


def _below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or (place.endswith("/") and path.startswith(place)) for place in places)


def pytest_ini() -> bytes:
    """Content of ``PYTEST_INI``."""
    return _INI_TEXT.encode()


def _sdist(
    name: str,
    version: str,
    licence: str,
    sha256: str,
    code: str,
    tests: str,
    terms: str = "LICENSE",
    held_out: bool = False,
) -> Library:
    archive = f"{name}-{version}.tar.gz"
    return Library(name, version, licence, sha256, tuple(code.split()), tuple(tests.split()), terms, archive, held_out)


_NETWORKX_TESTS = (
    "networkx/classes/tests/__init__.py",
    "networkx/classes/tests/dispatch_interface.py",
    "networkx/algorithms/components/tests/",
    "networkx/algorithms/operators/tests/",
    "networkx/algorithms/shortest_paths/tests/",
    "networkx/algorithms/traversal/tests/",
    "networkx/algorithms/tree/tests/",
    *(
        f"networkx/algorithms/tests/test_{topic}.py"
        for topic in "boundary bridges chains chordal clique core covering cycles dag dominance euler graphical "
        "lowest_common_ancestors matching mis simple_paths tournament triads".split()
    ),
)

LIBRARIES = {
    library.name: library
    for library in (
        _sdist(
            "boltons",
            "25.0.0",
            "BSD-3-Clause",
            "e110fbdc30b7b9868cb604e3f71d4722dd8f4dcb4a5ddd06028ba8f1ab0b5ace",
            "boltons/",
            "tests/",
        ),
        _sdist(
            "cachetools",
            "5.5.2",
            "MIT",
            "1a661caa9175d26759571b2e19580f9d6393969e5dfca11fdb1f947a23e640d4",
            "cachetools/",
            "tests/",
        ),
        _sdist(
            "inflection",
            "0.5.1",
            "MIT",
            "1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417",
            "inflection/",
            "test_inflection.py",
        ),
        _sdist(
            "mistune",
            "3.1.3",
            "BSD-3-Clause",
            "a7035c21782b2becb6be62f8f25d3df81ccb4d6fa477a6525b15af06539f02a0",
            "mistune/",
            "tests/",
        ),
        _sdist(
            "parse",
            "1.20.2",
            "MIT",
            "b41d604d16503c79d81af5165155c0b20f6c8d6c559efa66b4b695c3e5a0a0ce",
            "parse.py",
            "tests/",
            held_out=True,
        ),
        _sdist(
            "pycparser",
            "3.12",
            "BSD-3-Clause",
            "f03387877eab82ce01bbdfd0ba7252ee55a90b1c708d5129e2ce915475cf1db6",
            "pycparser/",
            "tests/",
        ),
        _sdist(
            "schema",
            "0.7.7",
            "MIT",
            "7da553abd2958a19dc2547c388cde53398b39196175a9be59ea1caf5ab0a1807",
            "schema.py",
            "test_schema.py",
            terms="LICENSE-MIT",
            held_out=True,
        ),
        _sdist(
            "semver",
            "3.0.4",
            "BSD-3-Clause",
            "afc7d8c584a5ed0a11033af086e8af226a9c0b206f313e0301f8dd7b6b589602",
            "semver/",
            "tests/",
            terms="LICENSE.txt",
        ),
        _sdist(
            "simpleeval",
            "1.0.3",
            "MIT",
            "67bbf246040ac3b57c29cf048657b9cf31d4e7b9d6659684daa08ca8f1e45829",
            "simpleeval.py",
            "test_simpleeval.py",
            terms="LICENCE",
            held_out=True,
        ),
        _sdist(
            "sqlparse",
            "0.5.3",
            "BSD-3-Clause",
            "09f67787f56a0b16ecdbde1bfc7f5d9c3371ca683cfeaa8e6ff60b4807ec9272",
            "sqlparse/",
            "tests/",
        ),
        _sdist(
            "tabulate",
            "0.9.0",
            "MIT",
            "0095b12bf5966de529c0feb1fa08671671b3368eec77d7ef7ab114be2c068b3c",
            "tabulate/",
            "test/",
        ),
        _sdist(
            "toolz",
            "1.0.0",
            "BSD-3-Clause",
            "2c86e3d9a04798ac556793bced838816296a2f085017664e4995cb40a1047a02",
            "toolz/ tlz/",
            "toolz/tests/",
            terms="LICENSE.txt",
        ),
        _sdist(
            "voluptuous",
            "0.15.2",
            "BSD-3-Clause",
            "6ffcab32c4d3230b4d2af3a577c87e1908a714a11f6f95570456b1849b0279aa",
            "voluptuous/",
            "voluptuous/tests/",
            terms="COPYING",
        ),
        _sdist(
            "xmltodict",
            "1.0.4",
            "MIT",
            "6d94c9f834dd9e44514162799d344d815a3a4faec913717a9ecbfa5be1bb8e61",
            "xmltodict.py",
            "tests/",
        ),
        Library(
            "networkx",
            "3.6.1",
            "BSD-3-Clause",
            "2b3972407aaac7b0c88613aadc2a2314d74981148f7cca35a3e397d7878faa72",
            ("networkx/",),
            _NETWORKX_TESTS,
            terms="",
        ),
    )
}
"""By name. networkx comes with manyturn: its tasks need nothing else."""


def library(name: str) -> Library:
    """The library of a name. Raises ValueError."""
    if name not in LIBRARIES:
        raise ValueError(f"no library {name}: there are {', '.join(LIBRARIES)}")
    return LIBRARIES[name]
