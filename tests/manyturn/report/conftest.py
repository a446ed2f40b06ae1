"""A browser for the page, and the modules of documents and payloads, which lie here without being tests."""

import asyncio
import importlib.util
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"report_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def documents() -> ModuleType:
    """Makes documents and traces."""
    return _beside("documents")


@pytest.fixture(scope="session")
def payloads() -> tuple[str, ...]:
    """Texts that break pages."""
    return _beside("payloads").PAYLOADS


@pytest.fixture(scope="session")
def evaluations(tmp_path_factory) -> tuple[Path, Path]:
    """The expert's and the random policy's, on one panel."""
    from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
    from manyturn.agents.play.demonstrations.scripted_policy import Scripted
    from manyturn.envs.contract.tasks.panel import make_panel
    from manyturn.envs.hosting.local.seats import open_seats

    maze = "manyturn/Maze-v0"
    top = tmp_path_factory.mktemp("evaluations")

    async def play():
        async with open_seats(maze, limit=8) as seats:
            panel = make_panel(seats.tasks("test"), maze, "test", 6)
            for name, noise in (("expert", 0.0), ("chance", 1.0)):
                options = {"repeats": 2, "seed": 1, "max_turns": 50, "label": name}
                await evaluate(seats, Scripted(noise), EvaluationPlan(panel, **options), out=top / name)

    asyncio.run(play())
    return top / "expert", top / "chance"


@dataclass
class Seen:
    """A page and everything that it should not do."""

    page: Any
    address: str
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def behaved(self) -> bool:
        """Nothing was asked for but the file itself, nothing popped up, nothing failed or was blocked."""
        assert [url for url in self.requests if url.split("#")[0] not in (self.address, "data:,")] == []
        assert (self.dialogs, self.complaints) == ([], [])
        return self.page.evaluate("window.pwned") is None

    def until(self, condition: str, argument: Any = None) -> None:
        """Wait for a condition; Playwright's own way needs eval, which the page's policy forbids."""
        deadline = time.monotonic() + 10
        while not self.page.evaluate(condition, argument):
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(10)

    def texts(self, selector: str) -> list[str]:
        """The text of each element."""
        return self.page.locator(selector).all_inner_texts()

    def turn(self) -> int:
        """The number of the turn on show, from 1."""
        return int(re.findall(r"^Turn (\d+) of", self.texts(".view:not([hidden]) .turn-head")[0])[0])

    def follow(self, address: str) -> None:
        """Go to an address, and wait until the group of the episode is there too."""
        self.page.evaluate("(hash) => { location.hash = hash; }", address)
        self.page.wait_for_selector(".group")


@pytest.fixture
def opened(browser, tmp_path) -> Iterator[Callable[..., Seen]]:
    """Opens a page, given as its text or its address; ``size`` is that of a laptop unless told."""
    contexts = []

    def open_(source: str, size: dict[str, int] | None = None, fragment: str = "", **options: Any) -> Seen:
        address = source
        if not source.startswith("http://"):
            file = tmp_path / "report.html"
            file.write_text(source, encoding="utf-8")
            address = file.as_uri()
        contexts.append(browser.new_context(viewport=size or {"width": 1366, "height": 768}, **options))
        seen = Seen(contexts[-1].new_page(), address)
        seen.page.set_default_timeout(60_000)
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        seen.page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(address + fragment)
        seen.until("document.title !== 'manyturn' || document.querySelector('.fault') !== null")
        return seen

    yield open_
    for context in contexts:
        context.close()
