"""A browser that shows another shop than the text does, mixes visits up, or takes a crash for an answer."""

import asyncio
import contextlib
import json
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Ending
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.envs.shop.browser.pages_env import ShopPages
from manyturn.envs.shop.pages.page_text import pieces
from manyturn.envs.shop.pages.pages import Receipt
from manyturn.envs.shop.shop_env import VisitEnv
from manyturn.envs.web.browser import the_browser
from manyturn.trainers.play.rollout.rollout_batch import plan_groups

ID = "manyturn/ShopPages-v0"
SMALL = {"products": 100, "difficulty": "hard"}
TINY = {"products": 50, "difficulty": "tiny"}
BUTTON = re.compile(r'^\[(\d+)\] button ("(?:[^"\\]|\\.)*")', re.MULTILINE)


@pytest.fixture(scope="module")
def env(chromium) -> Iterator[ShopPages]:
    env = ShopPages(max_turns=200, **SMALL)
    yield env
    env.close()


def text_shop(**arguments) -> VisitEnv:
    return make("manyturn/Shop-v0", **arguments).unwrapped


def everything(env: ShopPages, text: str) -> tuple[str, dict[str, str]]:
    """The whole page, and its buttons: name in small letters -> number; scrolls to the top again."""
    shown = [text]
    while "scroll[down]" in env.admissible():
        shown.append(env.step("scroll[down]")[0])
    for _ in shown[1:]:
        env.step("scroll[up]")
    page = "\n".join(re.sub(r"\n\(part \d+ of \d+\)$", "", one) for one in shown)
    return page, {json.loads(name).lower(): number for number, name in BUTTON.findall(page)}


def press(env: ShopPages, number: str) -> tuple:
    """Click a number, on whatever part of the page it is."""
    while f"click[{number}]" not in env.admissible():
        env.step("scroll[down]")
    return env.step(f"click[{number}]")


def do(env: ShopPages, action: str, buttons: dict[str, str]) -> tuple:
    """A text action in the browser."""
    if action.startswith("search["):
        env.step(f"type[1] {action[len('search[') : -1]}")
        return press(env, buttons["search"])
    return press(env, buttons[action[len("click[") : -1]])


def compare(env: ShopPages, shop: VisitEnv, task: str) -> None:
    """The same actions through both: the same pages, rewards and end."""
    shop.reset(seed=1, options={"task": task})
    text, *_ = env.reset(seed=1, options={"task": task})
    rng, ended = generator("parity", task), False
    while not ended:
        page, buttons = everything(env, text)
        session = shop.session
        assert set(buttons) == set(session.clickables)
        written = [
            " ".join(text.split()) for what, text in pieces(session.page) if what == "text" and text != "WebShop"
        ]
        assert [piece for piece in written if piece not in " ".join(page.split())] == []
        assert env.progress() == shop.progress() and env.anchor()[0] == shop.anchor()
        listed = shop.admissible()
        action = shop.expert() if rng.random() < 0.6 else listed[int(rng.integers(len(listed)))]
        _, wanted, ended, _, info = shop.step(action)
        text, reward, over, truncated, told = do(env, action, buttons)
        assert (reward, over, truncated, told.get("success")) == (wanted, ended, False, info.get("success")), action
    assert isinstance(shop.session.page, Receipt) and f"Your score (min 0.0, max 1.0): {wanted}" in text


def goals(count: int) -> list[str]:
    shop = text_shop(**SMALL)
    return [shop.tasks(split)[number].id for number in range(count) for split in ("train", "test")][:count]


@pytest.mark.deep
@pytest.mark.parametrize("count", [2, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_the_browser_shows_pays_and_ends_as_the_text_does(env, count):
    shop = text_shop(max_turns=200, **SMALL)
    for task in goals(count):
        compare(env, shop, task)
    assert env._tab.blocked == 0


@pytest.mark.deep
def test_the_expert_buys_what_is_asked_for_and_commands_that_are_listed_do_something(env):
    for task in goals(2):
        _, info = env.reset(seed=0, options={"task": task})
        ended = False
        while not ended:
            action = env.expert()
            assert action in info["admissible"]
            before = env.anchor()
            *_, reward, ended, _, info = env.step(action)
            assert info["understood"] and env.anchor() != before
        assert reward == 1.0 and info["success"] and env.admissible() == ["back"]


def test_going_back_is_gone_back_and_no_episode_reaches_into_the_one_before(env):
    env.reset(seed=1)
    env.step(env.expert())
    env.reset(seed=2)
    home, *_, info = env.step("back")
    assert (
        home.startswith("There is no page to go back to.")
        and not info["understood"]
        and "back" not in info["admissible"]
    )
    env.step(env.expert())
    results = env.step("click[2]")[0]
    item, *_ = env.step("click[4]")
    assert env.step("back")[0] == results and env.step("click[4]")[0] == item and env.progress() > 0
    for _ in range(2):
        env.step("back")
    assert env.observation == home.split("\n", 1)[1] and env.anchor()[0][1][0] == "home"


@pytest.mark.deep
def test_a_snapshot_continues_in_another_browser_page_with_its_history(env):
    env.reset(seed=4)
    for action in (env.expert(), "click[2]", "click[4]", "back", "click[1]", "type[1] two  words"):
        env.step(action)
    data = env.snapshot()
    other = ShopPages(max_turns=200, **SMALL)
    other.restore(data)
    assert other.snapshot() == data
    for action in ("click[2]", "back", "back", "click[3]", "back", "back", "back", "click[2]"):
        assert other.step(action) == env.step(action), action
    other.close()


@pytest.mark.parametrize(
    "action",
    ["", "search[lamp]", "click[0]", "click[99]", "click[1", "type[2] a", "select[1] a", "click[१]", "x" * 9999],
)
def test_what_means_nothing_is_told_and_changes_nothing(env, action):
    text, _ = env.reset(seed=5)
    before = env.anchor()
    told, reward, *_, info = env.step(action)
    assert (
        told.endswith(f"\n{text}")
        and told != text
        and reward == 0
        and not info["understood"]
        and env.anchor() == before
    )


@pytest.mark.deep
@pytest.mark.parametrize("words", ["\ud800", "<b>&amp;</b>", "[3] button", "漢字 🙂", "a\nb", " " * 3])
def test_any_text_can_be_searched_for(env, words):
    env.reset(seed=5)
    assert env.step(f"type[1] {words}")[-1]["understood"]
    text, *_ = env.step("click[2]")
    assert "Total results:" in text or not words.strip()


@pytest.mark.deep
def test_episodes_side_by_side_are_what_they_are_alone(chromium):
    tasks = [task.id for task in text_shop(**TINY).tasks("train")[:3]]

    def played(env: ShopPages, task: str) -> list[str]:
        texts, ended = [env.reset(seed=0, options={"task": task})[0]], False
        while not ended:
            text, _, ended, _, info = env.step(env.expert())
            texts.append(text)
        assert info["success"]
        return texts

    envs = [ShopPages(**TINY) for _ in tasks]
    with ThreadPoolExecutor(len(tasks)) as threads:
        together = list(threads.map(played, envs, tasks))
    assert [played(envs[0], task) for task in tasks[:1]] == together[:1]
    assert len({texts[0] for texts in together}) == len(tasks)
    for env in envs:
        env.close()


def browsers() -> list[psutil.Process]:
    """The browsers that this process started, without their helpers."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            command = one.cmdline()
            if "--remote-debugging-pipe" in command and "--type" not in str(command):
                found.append(one)
    return found


def crash(what: str) -> None:
    """End the browser, or what speaks with it, at once."""
    [browser, *_] = browsers()
    os.kill(browser.pid if what == "browser" else browser.parent().pid, signal.SIGKILL)


@pytest.fixture
def short_folder(monkeypatch) -> Iterator[Path]:
    """For what a browser leaves behind that is killed; Chromium's sockets allow for no path as long as ``tmp_path``."""
    with tempfile.TemporaryDirectory(prefix="mt-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.fixture
def own_browser(chromium, short_folder) -> Iterator[None]:
    """A browser that the test may kill."""
    the_browser().stop()
    yield
    the_browser().stop()


@pytest.mark.deep
@pytest.mark.parametrize("what", ["browser", pytest.param("driver", marks=pytest.mark.slow)])
def test_a_browser_that_dies_costs_no_episode(own_browser, what):
    """In this process: the episodes that were open are tried again under the same key, in another browser."""

    class Crashing(Scripted):
        calls = 0

        def player(self, key, instructions):
            Crashing.calls += 1
            if Crashing.calls == 3:
                crash(what)
            return super().player(key, instructions)

    async def run() -> list:
        async with open_seats(ID, TINY, limit=2) as seats:
            return await gather(seats, Crashing(), plan_groups(seats.tasks("train")[:2], 2, 0, "train"), max_turns=20)

    episodes = asyncio.run(run())
    assert [episode.success for episode in episodes] == [True] * 4
    assert {episode.ending for episode in episodes} == {Ending.COMPLETED}
    assert max(episode.attempts for episode in episodes) == 2 and len(browsers()) == 1


@pytest.mark.deep
def test_workers_play_and_leave_no_browser_behind(chromium, short_folder):
    async def run() -> list:
        async with open_seats(ID, TINY, limit=2, workers=1) as seats:
            plan = plan_groups(seats.tasks("train")[:2], 1, 0, "train")
            found = await gather(seats, Scripted(), plan, max_turns=20)
            assert not seats.replaced, seats.replaced
            return found

    assert all(episode.success and episode.attempts == 1 for episode in asyncio.run(run()))
    assert len(browsers()) <= 1  # this process's own
    assert not list(short_folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "text_rich"}, "leave it out"),
        ({"rewards": "shaped"}, "found, opened, chosen: leave them out"),
        ({"shop": "manyturn/Maze-v0"}, "manyturn/Maze-v0 is no shop"),
        ({"split": "dev"}, "no split 'dev'"),
    ],
)
def test_what_has_no_effect_in_a_browser_is_refused(chromium, arguments, message):
    with pytest.raises(ValueError, match=message):
        ShopPages(**arguments)


@pytest.mark.slow
def test_the_official_shop_is_shown_too(chromium, small):
    arguments = {"data": small, "goals": "human", "max_turns": 200}
    env = ShopPages(shop="manyturn/WebShop-v0", **arguments)
    compare(env, make("manyturn/WebShop-v0", **arguments).unwrapped, env.tasks("train")[0].id)
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_conformance_check_passes(chromium):
    report = check(ID, TINY, samples=3)
    assert report.passed, str(report)
