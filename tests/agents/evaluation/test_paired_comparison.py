"""Comparison: differences that are not there, tasks that do not belong together, losses that nobody sees."""

import asyncio
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.evaluation.paired_comparison import METRICS, CompareError, compare, read_evaluation
from manyturn.agents.evaluation.statistics import detectable_difference, holm, paired_difference
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.records.episode_rows import EPISODES, read_episodes, write_table
from manyturn.api.comparison import compare_evaluations
from manyturn.api.task_panel_file import TaskChoice, make_panel_file, read_panel, verify_panel_file
from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.tasks.panel import PanelError, make_panel
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"


def play(out, noise, tasks=None, wrappers=(), **settings):
    async def run():
        async with open_seats(MAZE, wrappers=wrappers, limit=8) as seats:
            chosen = tasks if tasks is not None else seats.tasks("test")[:20]
            options = {"repeats": 2, "seed": 1, "max_turns": 50, **settings}
            plan = EvaluationPlan(make_panel(chosen, MAZE, "test"), **options)
            await evaluate(seats, Scripted(noise), plan, out=out)

    asyncio.run(run())
    return out


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Evaluations of the expert, of one that errs at times, and of one that errs half the time; each 20 tasks."""
    return [play(tmp_path_factory.mktemp("noise"), noise) for noise in (0.0, 0.3, 0.5)]


@pytest.fixture
def with_errors(folders, tmp_path):
    """The second evaluation, in which both episodes of the first task and one of the second ended in an error."""
    for name in ("summary.json", "panel.json"):
        (tmp_path / name).write_bytes((folders[1] / name).read_bytes())
    rows = read_episodes(folders[1] / "episodes.parquet")
    for row in rows[:3]:
        row.update({"success": None, "return": None, "ending": "env_error"})
    write_table(tmp_path / "episodes.parquet", rows, EPISODES)
    return tmp_path


def said(call, *args, **kwargs):
    text = io.StringIO()
    found = call(*args, **kwargs, console=Console(file=text, width=160))
    return found, text.getvalue()


def test_scores_with_different_users_are_never_compared(tmp_path):
    async def talk(user, out):
        async with open_seats("manyturn/Talk-Booking-v0", {"user": user}) as seats:
            panel = make_panel(seats.tasks("test")[:3], "manyturn/Talk-Booking-v0", "test")
            await evaluate(seats, Scripted(0.0), EvaluationPlan(panel, repeats=1, seed=1, max_turns=20), out=out)
        return out

    plain = asyncio.run(talk("agenda", tmp_path / "plain"))
    noisy = asyncio.run(talk({"kind": "agenda", "noise": 0.2}, tmp_path / "noisy"))
    assert read_evaluation(plain).summary["user"] == "agenda"
    with pytest.raises(CompareError, match=r"talks to agenda, .* to agenda\(noise=0.2\): evaluate both with one user"):
        compare([read_evaluation(plain), read_evaluation(noisy)])


def test_the_figures_are_those_of_the_episodes(folders):
    expert, noisy, _ = map(read_evaluation, folders)
    found = compare([expert, noisy])["comparisons"][0]
    by_task = {}
    for row in noisy.rows:
        by_task.setdefault(row["task"], []).append(row["success"])
    lost = {task: sum(wins) / len(wins) for task, wins in by_task.items() if not all(wins)}
    assert 0 < len(lost) < 20 and found["left_out"] == []
    assert found["regressions"] == [
        {"task": task, "before": 1, "after": lost[task]} for task in sorted(lost, key=lambda t: (lost[t], t))
    ]
    success = found["success"]
    assert (success["wins"], success["losses"], success["ties"]) == (0, len(lost), 20 - len(lost))
    assert success["difference"] == pytest.approx(noisy.summary["success"]["mean"] - 1)
    assert success["ci_low"] < success["difference"] < success["ci_high"] and success["n_tasks"] == 20
    # No error: both readings are one.
    assert found["success_errors_as_failures"] == success


def test_exchanging_both_sides_turns_the_signs_and_nothing_else(folders):
    a, b = map(read_evaluation, folders[1:])
    [there], [back] = (compare(pair)["comparisons"] for pair in ((a, b), (b, a)))
    for metric in METRICS:
        assert there[metric]["difference"] == pytest.approx(-back[metric]["difference"])
        assert there[metric]["ci_low"] == pytest.approx(-back[metric]["ci_high"])
        assert there[metric]["wins"] == back[metric]["losses"]
        assert there[metric]["p"] == back[metric]["p"]
        assert there[metric]["detectable"] == pytest.approx(back[metric]["detectable"])


def test_a_policy_against_itself_is_no_different_but_not_proven_equal(folders):
    evaluation = read_evaluation(folders[1])
    success = compare([evaluation, evaluation])["comparisons"][0]["success"]
    assert success["difference"] == 0 and success["p"] == 1 and success["ties"] == 20
    assert success["ci_low"] < -0.1 and success["ci_high"] > 0.1
    assert success["detectable"] is None


def test_errors_are_neither_failures_nor_ties(folders, with_errors):
    whole, broken = read_evaluation(folders[1]), read_evaluation(with_errors)
    found = compare([whole, broken])
    [one] = found["comparisons"]
    assert found["policies"][1]["errors"] == 3 and found["policies"][0]["errors"] == 0
    assert one["success"]["n_tasks"] == 19 and one["left_out"] == [broken.panel.tasks[0]]
    assert one["success_errors_as_failures"]["n_tasks"] == 20
    assert one["success_errors_as_failures"]["difference"] < one["success"]["difference"]
    _, text = said(compare_evaluations, [folders[1], with_errors])
    assert "errors as failures" in text and "1 tasks left out" in text


def test_several_comparisons_pay_for_their_number(folders):
    found, text = said(compare_evaluations, folders)
    raw, adjusted = ([one["success"][key] for one in found["comparisons"]] for key in ("p", "p_holm"))
    assert adjusted == holm(raw) and max(adjusted) > min(raw)
    assert "Holm" in text
    assert "Holm" not in said(compare_evaluations, folders[:2])[1]


def test_reward_parts_are_compared_each_by_itself(tmp_path):
    wrappers = [{"name": "turn_cost", "cost": 0.25}]
    expert, noisy = (play(tmp_path / str(noise), noise, wrappers=wrappers) for noise in (0.0, 0.5))
    found, text = said(compare_evaluations, [expert, noisy])
    a, b = (policy["parts"] for policy in found["policies"])
    one = found["comparisons"][0]
    assert one["parts"].keys() == a.keys() == {"outcome", "turn"}
    for part in a:
        assert one["parts"][part]["difference"] == pytest.approx(b[part]["mean"] - a[part]["mean"])
    both = sum(one["parts"][part]["difference"] for part in a)
    assert one["return"]["difference"] == pytest.approx(both), "parts sum to the reward"
    assert one["parts"]["outcome"] == one["success"], "0 or 1 in every episode"
    assert one["parts"]["turn"]["p_holm"] == one["parts"]["turn"]["p"]
    assert "reward parts" in text and "part turn" in text


def test_what_replies_took_is_compared_over_the_same_tasks(folders, tmp_path):
    """A policy that is as good at half the price, or whose replies are cut, is seen where it is compared."""
    for name in ("summary.json", "panel.json"):
        (tmp_path / name).write_bytes((folders[1] / name).read_bytes())
    rows = read_episodes(folders[1] / "episodes.parquet")
    counted = {"prompt_tokens": 100, "reply_tokens": 10, "last_prompt_tokens": 50, "cost": 0.5, "cut_replies": 1}
    write_table(tmp_path / "episodes.parquet", [row | counted for row in rows], EPISODES)
    found, text = said(compare_evaluations, [folders[0], tmp_path])
    scripted, endpoint = found["policies"]
    assert endpoint["cost"]["total"] == 0.5 * len(rows) and scripted["cost"]["total"] is None
    assert endpoint["cut_reply_rate"] == pytest.approx(len(rows) / sum(row["turns"] for row in rows))
    lines = text.splitlines()
    head = next(place for place, line in enumerate(lines) if "invalid" in line)
    head, _, expert, paid = lines[head : head + 4]
    assert "cut" in head and "cost" in head and f"{0.5 * len(rows):.3g}" in paid and "–" in expert
    assert "cut" not in said(compare_evaluations, folders[:2])[1], "known of neither"


def test_other_tasks_are_refused_with_the_mend_and_compared_over_what_is_shared(folders, tmp_path):
    other = play(tmp_path, 0.3, Maze().tasks("test")[10:40])
    with pytest.raises(CompareError, match=r"different panels: 10 tasks .*'test/easy/10'.* --shared"):
        compare_evaluations([folders[1], other])
    found, text = said(compare_evaluations, [folders[1], other], shared=True)
    assert found["n_tasks"] == 10 and found["shared"] and "10 tasks that all have" in text
    # The same worlds, the same seed, the same policy: what is shared was played alike.
    assert found["comparisons"][0]["success"]["ties"] == 10
    apart = play(tmp_path / "apart", 0.3, Maze().tasks("test")[50:54])
    with pytest.raises(CompareError, match="without a common task"):
        compare_evaluations([folders[1], apart], shared=True)


def test_other_settings_are_said_and_not_refused(folders, tmp_path):
    other = play(tmp_path, 0.3, seed=5, repeats=1)
    found, text = said(compare_evaluations, [folders[1], other])
    assert found["notes"] == ["seed differs: 1, 5", "repeats differs: 2, 1"] and "seed differs: 1, 5" in text
    assert compare([read_evaluation(folder) for folder in folders])["notes"] == []


def test_an_interval_and_a_p_that_disagree_are_explained(folders, tmp_path):
    bad = play(tmp_path / "bad", 1.0)
    found, text = said(compare_evaluations, [folders[0], bad])
    assert found["comparisons"][0]["success"]["p"] < 0.05 and "believe p" not in text
    lost = {task["task"] for task in found["comparisons"][0]["regressions"] if task["before"] - task["after"] == 1}
    four = [task for task in Maze().tasks("test")[:20] if task.id in lost][:4]
    found, text = said(compare_evaluations, [play(tmp_path / str(noise), noise, four) for noise in (0.0, 1.0)])
    assert len(four) == 4 and found["comparisons"][0]["success"]["p"] == 0.125 and "believe p" in text


def test_everything_is_written_and_long_lists_are_cut_in_print_only(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("manyturn.api.comparison._SHOWN_REGRESSIONS", 2)
    found, text = said(compare_evaluations, [folders[0], folders[2]], out=tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text()) == found
    worse = found["comparisons"][0]["regressions"]
    assert len(worse) > 2 and f"worse than A on {len(worse)} tasks, the worst 2" in text
    assert worse[1]["task"] in text and text.count("→") == 2


def test_a_runs_folder_means_its_evaluation_and_what_is_none_is_said(folders, tmp_path):
    (tmp_path / "evaluation").symlink_to(folders[0])
    assert read_evaluation(tmp_path).rows == read_evaluation(folders[0]).rows
    with pytest.raises(CompareError, match="holds no evaluation: make one with manyturn evaluate"):
        read_evaluation(tmp_path / "nothing")
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "episodes.jsonl").write_bytes((folders[0] / "episodes.jsonl").read_bytes())
    with pytest.raises(CompareError, match="not finished"):
        read_evaluation(begun)
    with pytest.raises(CompareError, match="two evaluations at least"):
        compare([read_evaluation(folders[0])])


def test_files_of_different_evaluations_in_one_folder_are_refused(folders, tmp_path):
    for name in ("summary.json", "panel.json", "episodes.parquet"):
        (tmp_path / name).write_bytes((folders[0] / name).read_bytes())
    assert read_evaluation(tmp_path)
    write_table(tmp_path / "episodes.parquet", read_episodes(folders[0] / "episodes.parquet")[:6], EPISODES)
    with pytest.raises(CompareError, match="different tasks"):
        read_evaluation(tmp_path)
    (tmp_path / "panel.json").write_text((tmp_path / "panel.json").read_text().replace("test/easy/3", "test/easy/300"))
    with pytest.raises(CompareError, match="was edited"):
        read_evaluation(tmp_path)


def test_names_from_files_do_not_steer_the_terminal(folders, tmp_path):
    for name in ("panel.json", "episodes.parquet"):
        (tmp_path / name).write_bytes((folders[0] / name).read_bytes())
    summary = json.loads((folders[0] / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps(summary | {"policy": "[red]x[/] \x1b[2J\u202e"}))
    text = said(compare_evaluations, [folders[0], tmp_path])[1]
    assert r"[red]x[/] \x1b[2J\u202e" in text and "\x1b[2J" not in text


def test_a_panel_file_is_made_verified_and_guarded(tmp_path):
    path = tmp_path / "panel.json"
    made, text = said(make_panel_file, MAZE, TaskChoice("test", limit=12), path, {})
    assert f"hash {made.hash}  12 tasks" in text
    assert said(verify_panel_file, path) == (made, text)
    assert make_panel_file(MAZE, TaskChoice("test", limit=12), path, {}, Console(file=io.StringIO())).hash == made.hash
    with pytest.raises(PanelError, match="another panel, on which results may rest"):
        make_panel_file(MAZE, TaskChoice("test", limit=13), path, {})
    with pytest.raises(PanelError, match=r"panel of manyturn/Maze-v0, not of manyturn/GuessNumber-v0: leave --env out"):
        read_panel(path, env="manyturn/GuessNumber-v0")
    with pytest.raises(PanelError, match="panel of the split test: leave --split out"):
        read_panel(path, split="train")
    assert read_panel(path, MAZE, "test") == made
    with pytest.raises(PanelError, match="make it with manyturn panel make"):
        read_panel(tmp_path / "missing.json")


def test_a_panel_that_was_edited_or_whose_tasks_changed_does_not_verify(tmp_path):
    path = tmp_path / "panel.json"
    said(make_panel_file, MAZE, TaskChoice("test", limit=3), path, {})
    whole = path.read_text()
    path.write_text(whole.replace("test/easy/1", "test/easy/9"))
    with pytest.raises(PanelError, match=r"panel\.json: .* was edited"):
        verify_panel_file(path)
    path.write_text("{}")
    with pytest.raises(PanelError, match="not a panel"):
        verify_panel_file(path)
    changed = make_panel(Maze().tasks("validation")[:2], MAZE, "test")
    changed.save(path)
    with pytest.raises(PanelError, match="does not exist"):
        verify_panel_file(path)


def test_equal_outcomes_on_few_tasks_do_not_prove_equality():
    alike = {str(i): [1.0] for i in range(20)}
    assert paired_difference(alike, alike)[:3] == (0, 0, 0)
    mean, low, high, *_ = paired_difference(alike, alike, proportion=True)
    assert mean == 0 and high == -low == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-4)
    _, low, high, *_ = paired_difference(alike, {task: [0.0] for task in alike}, proportion=True)
    assert high == 1 and 0.6 < low < 0.7


def test_no_difference_of_successes_may_be_larger_than_one():
    none, most = {str(i): [0.0] for i in range(8)}, {str(i): [float(i > 1)] for i in range(8)}
    assert paired_difference(most, none)[2] > 1, "of a return it may"
    mean, low, high, *_ = paired_difference(most, none, proportion=True)
    assert (mean, high) == (0.75, 1) and 0.3 < low < 0.5
    assert paired_difference(none, most, proportion=True)[:3] == (-mean, -high, -low)


def test_the_detectable_difference_is_found_in_four_of_five_times():
    import numpy as np

    rng = np.random.default_rng(0)
    found, sizes = 0, []
    for _ in range(1500):
        b = {str(i): [float(v)] for i, v in enumerate(rng.normal(0, 1, 60))}
        a = {task: [values[0] + 2.8016 / math.sqrt(60) + rng.normal(0, 1)] for task, values in b.items()}
        found += paired_difference(a, b).low > 0
        sizes.append(detectable_difference(a, b))
    assert 0.76 <= found / 1500 <= 0.83
    assert np.mean(sizes) == pytest.approx(2.8016 / math.sqrt(60), rel=0.02)
    assert math.isnan(detectable_difference({"a": [1]}, {"a": [0]}))


@given(st.lists(st.floats(0, 1), max_size=8), st.randoms())
def test_holm_never_makes_a_p_value_smaller_and_keeps_their_order(p_values, random):
    adjusted = holm(p_values)
    assert all(p <= q <= min(1, len(p_values) * p) + 1e-12 for p, q in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)
    shuffled = random.sample(order, len(order))
    assert holm([p_values[i] for i in shuffled]) == [adjusted[i] for i in shuffled]


def test_what_is_no_comparison_does_not_count_as_one():
    adjusted = holm([0.01, math.nan, 0.04])
    assert adjusted[0] == 0.02 and math.isnan(adjusted[1]) and adjusted[2] == 0.04
