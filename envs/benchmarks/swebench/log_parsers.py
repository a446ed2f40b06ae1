"""The status of each test, read from the log of a repository's own test runner.

The readings are those of SWE-bench's harness 5.0.2 (``swebench.harness.log_parsers``, MIT), quirks included, for its
Python repositories. A status is the word that the log has, usually one of ``STATUSES``. Every reading takes time that
is linear in the log, whatever is in it: a patch under test may print what it likes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

PASSED, FAILED, SKIPPED, ERROR, XFAIL = "PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"
STATUSES = (FAILED, PASSED, SKIPPED, ERROR, XFAIL)
LogParser = Callable[[str], dict[str, str]]

_COUNT = re.compile(r"\[\d+\]")
_COLOUR = re.compile(r"\[(\d+)m")
_CONTROLS = dict.fromkeys(range(1, 32))
_MOUSE = {"MouseButton.LEFT": "1", "MouseButton.RIGHT": "3"}


def pytest_log(log: str) -> dict[str, str]:
    """Pytest's short summary (``-rA``): a line for each test, status first."""
    return {words[1]: words[0] for words in _summary(log)}


def pytest_options_log(log: str) -> dict[str, str]:
    """The same where parameters may be absolute paths, of which the last part is kept."""
    return {_without_folders(words[1]): words[0] for words in _summary(log)}


def matplotlib_log(log: str) -> dict[str, str]:
    """The same where mouse buttons are told by number."""
    for name, number in _MOUSE.items():
        log = log.replace(name, number)
    return pytest_log(log)


def pytest_v2_log(log: str) -> dict[str, str]:
    """Pytest's short summary with colours and names that hold blanks; old versions put the status last."""
    statuses = {}
    for line in log.split("\n"):
        line = _COLOUR.sub("", line).translate(_CONTROLS)
        if line.startswith(STATUSES):
            words = (line.split(" - ", 1)[0] if line.startswith(FAILED) else line).split()
            if len(words) >= 2 and not _counts_skips(words):
                statuses[" ".join(words[1:])] = words[0]
        elif line.endswith(STATUSES):
            words = line.split()
            if len(words) >= 2:
                statuses[" ".join(words[:-1])] = words[-1]
    return statuses


def seaborn_log(log: str) -> dict[str, str]:
    """Only failures and passes count; a pass may stand before or after its test."""
    statuses = {}
    for line in log.split("\n"):
        words = line.split()
        if len(words) < 2:
            continue
        if line.startswith(FAILED):
            statuses[words[1]] = FAILED
        elif f" {PASSED} " in line:
            if words[1] == PASSED:
                statuses[words[0]] = PASSED
        elif line.startswith(PASSED):
            statuses[words[1]] = PASSED
    return statuses


def sympy_log(log: str) -> dict[str, str]:
    """``bin/test``: ``test_x ok``, ``F`` or ``E``, and a headline ``____ file.py:test_x ____`` for each failure."""
    statuses = {}
    for line in log.split("\n"):
        named = line[line.find(" ") + 1 : max(line.rfind(" "), 0)]
        if ".py:" in named:
            statuses[named] = FAILED
    ends = {" E": ERROR, " F": FAILED, " ok": PASSED}
    for line in map(str.strip, log.split("\n")):
        for end, status in ends.items():
            if line.startswith("test_") and line.endswith(end):
                statuses[line.split()[0]] = status
    return statuses


def django_log(log: str) -> dict[str, str]:
    """Django's runner with ``--verbosity 2``: ``test_x (module.Case) ... ok``, perhaps with noise before the ``ok``."""
    statuses: dict[str, str] = {}
    open_test = None
    for line in map(str.strip, log.split("\n")):
        if "--version is equivalent to version" in line:
            statuses["--version is equivalent to version"] = PASSED
        if " ... " in line:
            open_test = line.split(" ... ")[0]
        statuses.update(_django_line(line))
        if line.startswith("ok") and open_test is not None:
            statuses[open_test] = PASSED
    statuses.update(dict.fromkeys(_django_interrupted(log), PASSED))
    return statuses


def _django_line(line: str) -> Iterator[tuple[str, str]]:
    """Statuses in one stripped line of Django's runner."""
    for end in (" ... ok", " ... OK", " ...  OK"):
        if line.endswith(end):
            if line.startswith("Applying sites.0002_alter_domain_unique...test_no_migrations"):
                line = line.split("...", 1)[-1].strip()  # the test's name is printed after a migration's
            yield line.rsplit(end, 1)[0], PASSED
            break
    if " ... skipped" in line:
        yield line.split(" ... skipped")[0], SKIPPED
    for word, status in (("FAIL", FAILED), ("ERROR", ERROR)):
        if line.endswith(f" ... {word}"):
            yield line.split(f" ... {word}")[0], status
        if line.startswith(f"{word}:") and len(line.split()) > 1:
            yield line.split()[1], status


_BANNER = re.compile(r"^(.*?)\s\.\.\.\sTesting against Django installed in ", re.MULTILINE)
_BANNER_END = re.compile(r" silenced\)\.\nok$", re.MULTILINE)
_REQUEST = re.compile(r"\s\.\.\.\sInternal Server Error: /")
_CHECK = re.compile(r"\s\.\.\.\sSystem check identified no issues \(0 silenced\)$")


def _django_interrupted(log: str) -> Iterator[str]:
    """Tests whose ``ok`` comes on a line of its own, after a message that Django printed in between."""
    place = 0
    while (start := _BANNER.search(log, place)) and (end := _BANNER_END.search(log, start.end())):
        yield start[1]
        place = end.end()
    for line, after in pairwise(log.split("\n")):
        if after == "ok":
            request = _REQUEST.search(line)
            if request and line.endswith("/") and len(line) > request.end():
                yield line[: request.start()]
            elif check := _CHECK.search(line):
                yield line[: check.start()]


def _summary(log: str) -> Iterator[list[str]]:
    """The words of each line of pytest's short summary: status, test, and perhaps more."""
    for line in log.split("\n"):
        if line.startswith(STATUSES):
            words = (line.replace(" - ", " ") if line.startswith(FAILED) else line).split()
            if len(words) > 1 and not _counts_skips(words):
                yield words


def _counts_skips(words: list[str]) -> bool:
    """``SKIPPED [3] file:line: reason`` tells how many were skipped there, not which."""
    return words[0] == SKIPPED and _COUNT.fullmatch(words[1]) is not None


def _without_folders(test: str) -> str:
    start = test.find("[")
    end = test.rfind("]")
    if start < 0 or end < start:
        return test
    name, option = test[:start], test[start + 1 : end]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = "/" + option.split("/")[-1]
    return f"{name}[{option}]"


_BY_REPOSITORY: Mapping[str, LogParser] = {
    "astropy/astropy": pytest_v2_log,
    "django/django": django_log,
    "matplotlib/matplotlib": matplotlib_log,
    "mwaskom/seaborn": seaborn_log,
    "psf/requests": pytest_options_log,
    "pydicom/pydicom": pytest_options_log,
    "pylint-dev/pylint": pytest_options_log,
    "scikit-learn/scikit-learn": pytest_v2_log,
    "sphinx-doc/sphinx": pytest_v2_log,
    "sympy/sympy": sympy_log,
}
_BY_NAME: Mapping[str, LogParser] = {
    **dict.fromkeys(
        ("pytest", "astroid", "flask", "marshmallow", "pvlib", "pyvista", "sqlfluff", "xarray"), pytest_log
    ),
    **dict.fromkeys(("pytest_options", "pydicom", "requests", "pylint"), pytest_options_log),
    **dict.fromkeys(("pytest_v2", "astropy", "scikit", "sphinx"), pytest_v2_log),
    **{"django": django_log, "seaborn": seaborn_log, "sympy": sympy_log, "matplotlib": matplotlib_log},
}


def parser_of(repository: str, name: str = "") -> LogParser:
    """The parser of a row. Raises KeyError for a name that is not of a Python repository.

    Args:
        repository: ``owner/name``.
        name: the harness's name for it, such as ``parse_log_django``, if the row has one.
    """
    return _BY_NAME[name.removeprefix("parse_log_")] if name else _BY_REPOSITORY.get(repository, pytest_log)
