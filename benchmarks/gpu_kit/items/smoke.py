"""Every path of CUDA at tiny size: the tests of ``tests/gpu``, a row for each with its full traceback.

They run in this process. Where a test has broken the device, the process ends, and another goes on with the rest.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.gpu_kit.cases import BROKEN, NOT_BEGUN, Writer
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.kit.provenance import ROOT

_TESTS = ROOT / "tests" / "gpu"


def run(writer: Writer) -> int:
    """Run the tests that have no row yet; returns the process's exit code."""
    rows = _Rows(writer)
    # Their own conftest.py only: the one above asks for packages that such a machine has not.
    words = [str(_TESTS), f"--confcutdir={_TESTS}", "--device", writer.device.torch.type, "-q", "-s", "--tb=long"]
    code = pytest.main(
        [*words, "-p", "no:cacheprovider", "-p", "no:faulthandler", "-o", "addopts=--import-mode=importlib"],
        plugins=[rows],
    )
    if not writer.device.works():
        return BROKEN
    return 0 if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else int(code)


class _Rows:
    """A plugin that writes a row at each test's end."""

    def __init__(self, writer: Writer):
        self._writer, self._reports = writer, list[pytest.TestReport]()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        done = self._writer.done()
        # Compiling takes longest, and stands for one option only.
        items[:] = sorted((item for item in items if _case(item) not in done), key=lambda item: "compile" in item.name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began, self._reports = self._writer.begin(_case(item)), []
        result = yield
        self._writer.end(_case(item), began, _content(self._reports))
        if not self._writer.device.works():
            item.session.shouldstop = "the device is broken"
        return result

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._writer.session.late:
            pytest.fail(NOT_BEGUN, pytrace=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)


def _case(item: pytest.Item) -> str:
    return item.nodeid.rpartition("/")[2].replace(".py::", ": ")


def _content(reports: list[pytest.TestReport]) -> Figures:
    for report in reports:
        if report.failed:
            return {"error": f"{report.when}: {_message(report.longrepr)[:300]}", "traceback": str(report.longrepr)}
        if report.skipped:
            return {"skipped": str(report.longrepr[2]).removeprefix("Skipped: ")}  # type: ignore[index]
    return {"figures": dict[str, Any](next(report.user_properties for report in reports if report.when == "call"))}


def _message(longrepr: Any) -> str:
    crash = getattr(longrepr, "reprcrash", None)
    return " ".join((crash.message if crash else str(longrepr)).split())
