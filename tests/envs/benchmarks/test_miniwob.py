"""A task that starts differently each time, ends by the clock, reaches beyond its folder, or cannot be solved."""

import re
import time
from collections.abc import Iterator

import pytest

from manyturn.envs.benchmarks.miniwob import PLAYABLE, SEEDS, MiniWoB, Variants, file_of, folder
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.web.tab import Tab

pytestmark = pytest.mark.versions

pytest.importorskip("miniwob", reason="the package miniwob is not installed")
Actions = Iterator[str]


def number(text: str, kind: str, name: str | None = None, place: int = 0) -> int:
    """The number of a control of a kind, by its name or its place among them."""
    controls = re.findall(rf'^\[(\d+)\] (?:{kind})(?: "((?:[^"\\]|\\.)*)")?', text, re.MULTILINE)
    return int([n for n, named in controls if name in (None, named)][place])


def said(text: str) -> list[str]:
    """The texts in quotation marks of the first line of the page."""
    return re.findall(r'"([^"]*)"', text.split("\n")[0])


def submit(text: str) -> str:
    return f"click[{number(text, 'button', 'Submit')}]"


def press(text: str, *names: str) -> Actions:
    yield from (f"click[{number(text, 'button', name)}]" for name in names)


def tick(text: str) -> Actions:
    names = re.match(r"Select (.*) and click Submit", text)[1]
    for name in names.split(", ") if names != "nothing" else []:
        yield f"click[{number(text, 'checkbox|radio', name)}]"
    yield submit(text)


def fill(text: str, *values: str) -> Actions:
    for place, value in enumerate(values):
        yield f"type[{number(text, 'textbox', None, place)}] {value}"
    yield f"click[{number(text, 'button')}]"


def choose(text: str) -> Actions:
    yield f"select[1] {re.match(r'Select (.*) from the list', text)[1]}"
    yield submit(text)


def in_capitals_or_not(text: str) -> Actions:
    return fill(text, said(text)[0].upper() if "upper case" in text else said(text)[0].lower())


def logged_in(text: str) -> Actions:
    """A window that opens in between is cancelled, and what was typed then is typed again."""
    steps = list(enumerate(said(text)))
    while steps:
        if 'button "Cancel"' in text:
            text = yield f"click[{number(text, 'button', 'Cancel')}]"
        else:
            place, value = steps[0]
            text = yield f"type[{number(text, 'textbox', None, place)}] {value}"
            if 'button "Cancel"' not in text:
                del steps[0]
    yield f"click[{number(text, 'button')}]"


def nth_word(text: str) -> Actions:
    place = int(re.search(r"the (\d+)", text)[1])
    return fill(text, re.findall(r"[\w']+", text.split("\n")[1])[place - 1])


def second_form(text: str) -> Actions:
    radio, value, field = re.search(r"the (\d)\w+ radio .* \"(-?\d+)\" into the (\d)", text).groups()
    yield f"click[{number(text, 'radio', None, int(radio) - 1)}]"
    yield f"type[{number(text, 'textbox', None, int(field) - 1)}] {value}"
    yield submit(text)


def from_table(text: str) -> Actions:
    label, lines = re.search(r"value of (.*) into", text)[1], text.split("\n")
    return fill(text, lines[lines.index(label, 1) + 1])


def sum_of(text: str) -> Actions:
    left, sign, right = re.search(r"(-?\w+) ([-+]) (-?\w+) =", text).groups()
    if "x =" not in text:
        return fill(text, str(int(left) + int(right) * (1 if sign == "+" else -1)))
    total = int(re.search(r"= (-?\d+)", text)[1])
    if right == "x":
        return fill(text, str(total - int(left) if sign == "+" else int(left) - total))
    return fill(text, str(total - int(right) if sign == "+" else total + int(right)))


def completed(text: str) -> Actions:
    start, *end = said(text)
    text = yield f"type[1] {start}"
    names = re.findall(r'^\[\d+\] \w+ "(.*)"$', text, re.MULTILINE)
    match = next(name for name in names if name.startswith(start) and name.endswith(end[0] if end else ""))
    text = yield f"click[{number(text, r'[a-z]+', match)}]"
    yield submit(text)


def found_in_tree(text: str) -> Actions:
    clicked: list[str] = []
    while True:
        names = re.findall(r'^\[\d+\] clickable "(.*)"$', text, re.MULTILINE)
        clicked.append(said(text)[0] if said(text)[0] in names else next(n for n in names if n not in clicked))
        text = yield f"click[{number(text, 'clickable', clicked[-1])}]"


SOLUTIONS = {
    "choose-list": choose,
    "click-button": lambda text: press(text, said(text)[0]),
    "click-checkboxes": tick,
    "click-checkboxes-large": tick,
    "click-checkboxes-transfer": tick,
    "click-dialog": lambda text: press(text, "Close"),
    "click-dialog-2": lambda text: press(text, said(text)[0].replace("x", "Close")),
    "click-option": tick,
    "click-tab": lambda text: iter([f"click[{number(text, 'link', re.search(r'Tab #[0-9]', text)[0])}]"]),
    "enter-password": lambda text: fill(text, *said(text) * 2),
    "enter-text": lambda text: fill(text, *said(text)),
    "enter-text-2": in_capitals_or_not,
    "enter-text-dynamic": lambda text: fill(text, *said(text)),
    "find-word": nth_word,
    "focus-text-2": lambda text: iter([f"click[{re.search(r'the ([0-9])', text)[1]}]"]),
    "form-sequence-2": second_form,
    "login-user": lambda text: fill(text, *said(text)),
    "login-user-popup": logged_in,
    "navigate-tree": found_in_tree,
    "read-table": from_table,
    "simple-algebra": sum_of,
    "simple-arithmetic": sum_of,
    "unicode-test": lambda text: press(text, said(text)[0]),
    "use-autocomplete": completed,
}


def solved(env: MiniWoB, task: str) -> float:
    """The reward of a script's episode."""
    text, _ = env.reset(seed=0, options={"task": task})
    script = SOLUTIONS[task.split("/")[1]](text)
    action, ended, reward = next(script), False, 0.0
    while not ended:
        text, reward, terminated, truncated, info = env.step(action)
        assert info["understood"], (task, action, text)
        ended = terminated or truncated
        if not ended:
            action = script.send(text) if hasattr(script, "send") else next(script)
    assert info["success"] == (reward == 1)
    return reward


@pytest.fixture(scope="module")
def env(chromium) -> Iterator[MiniWoB]:
    env = MiniWoB()
    yield env
    env.close()


def test_every_task_that_is_played_by_default_has_a_solution():
    assert set(SOLUTIONS) == set(PLAYABLE)


@pytest.mark.deep
@pytest.mark.parametrize("name", PLAYABLE[::4])
def test_a_script_solves_some_of_what_is_played_by_default(env, name):
    assert solved(env, f"test/{name}/1") == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 2, 3])
@pytest.mark.parametrize("name", PLAYABLE)
def test_a_script_solves_all_that_is_played_by_default(env, name, number):
    assert solved(env, f"test/{name}/{number}") == 1.0


def test_a_wrong_answer_pays_the_raw_reward_and_is_no_success(env):
    env.reset(seed=0, options={"task": "test/simple-arithmetic/4"})
    env.step("type[1] 12345")
    text, reward, terminated, _, info = env.step("click[2]")
    assert terminated and reward == -1 and not info["success"] and text == "The task is over."


_PAY = "WOB_RAW_REWARD_GLOBAL=1;WOB_DONE_GLOBAL=true;core.endEpisode(1)"
SCRIPTS = (f"<img src=x onerror='{_PAY}'>", f'"><script>{_PAY}</script>')
TYPED = [name for name in PLAYABLE if "<input" in file_of(name).read_text() and name != "focus-text-2"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPED)
def test_what_is_typed_is_never_run(env, name):
    """The page holds its own verdict, so a script in it could pay itself."""
    for script in SCRIPTS:
        text, _ = env.reset(options={"task": f"test/{name}/0"})
        fields = len(re.findall(r"^\[\d+\] textbox", text, re.MULTILINE))
        for action in [f"type[{number(text, 'textbox', None, place)}] {script}" for place in range(fields)]:
            _, reward, terminated, _, _ = env.step(action)
            assert (reward, terminated) == (0.0, False)
        for action in env.unwrapped.admissible():
            if action.startswith("click"):
                _, reward, terminated, _, info = env.step(action)
                if terminated:
                    assert reward < 1 and info["success"] is False
                    break


@pytest.mark.deep
def test_the_same_variant_is_the_same_page_after_another_episode_and_in_another_tab(env):
    task = {"task": "train/click-tab/11"}
    first = env.reset(seed=0, options=task)[0], env.step("click[4]")[0]
    env.reset(seed=0, options={"task": "train/use-autocomplete/3"})
    env.step("type[1] A")
    other = MiniWoB()
    for again in (env, other):
        assert (again.reset(seed=5, options=task)[0], again.step("click[4]")[0]) == first
    other.close()
    assert env.reset(seed=0, options={"task": "train/click-tab/12"})[0] != first[0]


def test_a_snapshot_continues_on_another_page(env):
    env.reset(seed=0, options={"task": "test/enter-password/1"})
    env.step("type[1] abc")
    data = env.snapshot()
    env.step("type[2] def")
    other = MiniWoB()
    other.restore(data)
    assert other.step("type[2] def")[0] == env.observation
    other.close()


def test_what_is_covered_is_told_and_costs_a_turn(chromium):
    env = MiniWoB(tasks=["click-test-2"])
    env.reset(seed=0, options={"task": "test/click-test-2/1"})
    text, *_, info = env.step("click[1]")
    assert text.startswith("[1] cannot be clicked now.\n") and not info["understood"]
    env.close()


def test_nothing_outside_the_folder_is_reached(chromium, tmp_path):
    (tmp_path / "secret.html").write_text("<h1>secret</h1>")
    below = f"{folder().as_uri()}/"
    tab = Tab(below, scripts=True)
    page = file_of("click-button").as_uri()
    tab.open(page)
    for count, address in enumerate(
        ((tmp_path / "secret.html").as_uri(), f"{below}../registration.py", "http://127.0.0.1:9/"), start=1
    ):
        tab.value(f"() => {{ const a = document.createElement('a'); a.href = '{address}'; a.click(); }}")
        until = time.monotonic() + 20
        while tab.blocked < count and time.monotonic() < until:
            tab.value("() => 1")
        assert tab.blocked == count and tab.address == page
    assert "secret" not in tab.snapshot()
    tab.close()


def test_splits_share_no_seed_and_every_task_is_found_again():
    for split, (first, count) in SEEDS.items():
        tasks = Variants(split, ["click-button", "choose-list"])
        assert len(tasks) == 2 * count
        seeds = {tasks[place].params["seed"] for place in (0, 1, 2, -1)}
        assert seeds == {first, first + 1, first + count - 1}
        for task in (tasks[0], tasks[3], tasks[-1]):
            assert (
                tasks.find(task.id) == task and Variants(split, ["choose-list", "click-button"]).find(task.id) == task
            )
        for wrong in (f"{split}/click-button/{count}", f"{split}/click-button/01", f"{split}/other/1", "x", ""):
            assert tasks.find(wrong) is None


@pytest.mark.parametrize(("tasks", "message"), [(["no-such"], "there are .*click-button"), ([], "names no task")])
def test_a_wrong_name_is_told(chromium, tasks, message):
    with pytest.raises(ValueError, match=message):
        MiniWoB(tasks=tasks)


def test_without_the_package_the_mend_is_named(monkeypatch):
    folder.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NeedsSetup, match=r"pip install 'manyturn\[web,miniwob\]'"):
        folder()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_conformance_check_passes(chromium):
    report = check("manyturn/MiniWoB-v0", samples=2)
    assert report.passed, str(report)
