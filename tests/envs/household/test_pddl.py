"""Game files must load as what they are, or be refused with a message that says what to do."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.household.env import Household
from manyturn.envs.household.pddl import GameError, load_game, read_expression, read_game, read_problem, write_problem
from manyturn.envs.household.problem import Problem
from manyturn.envs.household.task_generator import build, find_task
from manyturn.envs.household.text import GRAMMARS
from manyturn.envs.household.world import Tables, World

pytestmark = pytest.mark.versions

LEVELS = st.sampled_from(["tiny", "easy", "medium", "hard"])


def problem_of(task_id: str) -> Problem:
    return build(find_task(task_id).params)


def game_file(path: Path, task_id: str, put: str = "move {o} to {r}", **more: object) -> None:
    problem = problem_of(task_id)
    grammar = f'"task": "Your task is to: {problem.sentence}" template :: "{put}"; "You arrive at {{lend.name}}."'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pddl_problem": write_problem(problem), "grammar": grammar, "solvable": True} | more))


@settings(max_examples=40, deadline=None)
@given(LEVELS, st.integers(0, 9999), st.randoms(use_true_random=False))
def test_an_exported_problem_plays_the_same_when_read_back(level: str, number: int, rng) -> None:
    problem = problem_of(f"test_unseen/{level}/{number % 9000}")
    again = read_problem(write_problem(problem))
    assert again == problem
    worlds = [World(Tables(p, GRAMMARS["move"])) for p in (problem, again)]
    assert worlds[0].intro() == worlds[1].intro()
    for _ in range(30):
        command = rng.choice(worlds[0].admissible())
        assert worlds[0].act(command) == worlds[1].act(command)
        assert worlds[0].admissible() == worlds[1].admissible()
        assert worlds[0].won == worlds[1].won


def test_numbers_of_names_follow_the_sorted_identifiers_downwards() -> None:
    problem = problem_of("train/hard/0")
    by_type: dict[str, list[int]] = {}
    for name in problem.receptacles:
        kind, _, number = name.partition(" ")
        by_type.setdefault(kind, []).append(int(number))
    assert all(numbers == list(range(len(numbers), 0, -1)) for numbers in by_type.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(define (problem p) (:objects) (:init) (:goal ()", "parentheses"),
        ("(define (problem p)))", "one '\\)' too many"),
        ("(define (domain alfred) (:predicates))", "not the domain"),
        ("(define (problem p) (:objects a - agent) (:init (atlocation a l)) (:goal (and)))", "six kinds"),
        ("{ not json", "download the file again"),
        ('{"grammar": ""}', "no pddl_problem"),
        ("", "parentheses"),
    ],
)
def test_a_wrong_file_is_refused_with_its_mend(text: str, message: str) -> None:
    with pytest.raises(GameError, match=message):
        read_game(text, source="x.pddl")


def test_an_agent_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(GameError, match="declares agent1"):
        read_problem(write_problem(problem_of("train/tiny/0")), agent="alice")


def test_a_slice_goal_is_refused_instead_of_played_as_another_goal() -> None:
    text = write_problem(problem_of("train/easy/0")).replace(
        "(inreceptacle ?o ?r)", "(inreceptacle ?o ?r) (issliced ?o)"
    )
    with pytest.raises(GameError, match="slices"):
        read_problem(text)


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    depth = 50_000
    nested = read_expression("(" * depth + ")" * depth)
    for _ in range(depth - 1):
        (nested,) = nested
    assert nested == []


def test_the_older_grammar_puts_in_or_on_and_arrives_at_a_location(tmp_path: Path) -> None:
    game_file(tmp_path / "game.tw-pddl", "train/tiny/0", put="put {o} in/on {r}")
    env = Household("test", games=tmp_path)
    env.reset(seed=0, options={"task": env.tasks("test")[0].id})
    assert "put OBJECT in/on RECEPTACLE" in env.instructions
    texts, commands = [], []
    for _ in range(20):
        commands.append(env.expert())
        text, _, terminated, _, _ = env.step(commands[-1])
        texts.append(text)
        if terminated:
            break
    assert terminated and texts[0].startswith("You arrive at loc ")
    assert commands[-1].startswith("put ") and " in/on " in commands[-1] and " in/on the " in texts[-1]
    other = Household("test", games=tmp_path)
    other.restore(env.snapshot())
    assert other.snapshot() == env.snapshot()
    modern = Household("test", games=tmp_path, grammar="move")
    modern.reset(seed=0, options={"task": env.tasks("test")[0].id})
    assert modern.step(commands[0])[0].startswith("You arrive at " + commands[0].removeprefix("go to "))


def test_official_folders_become_the_three_splits_in_sorted_order(tmp_path: Path) -> None:
    for folder, number in (
        ("train/b", 1),
        ("train/a", 2),
        ("valid_seen/c", 3),
        ("valid_unseen/d", 4),
        ("valid_train/e", 5),
    ):
        game_file(tmp_path / folder / "game.tw-pddl", f"train/tiny/{number}")
    game_file(tmp_path / "train" / "never" / "game.tw-pddl", "train/tiny/6", solvable=False)
    game_file(tmp_path / "train" / "pick-movable" / "game.tw-pddl", "train/tiny/7")
    (tmp_path / "train" / "a" / "initial_state.pddl").write_text(write_problem(problem_of("train/tiny/8")))
    env = Household("train", games=tmp_path)
    ids = {split: [task.id for task in env.tasks(split)] for split in env.splits}
    assert ids == {
        "train": ["train/train/a", "train/train/b"],
        "validation": ["validation/valid_seen/c"],
        "test": ["test/valid_unseen/d"],
        "test_unseen": [],
    }
    assert env.find("test/valid_unseen/d") == env.tasks("test")[0]
    with pytest.raises(KeyError):
        env.find("test/valid_unseen/zzz")


def test_kinds_keep_only_the_games_of_those_kinds(tmp_path: Path) -> None:
    for number, kind in enumerate(("put", "light", "clean")):
        (tmp_path / f"{kind}.pddl").write_text(write_problem(problem_of(f"train/easy/{number}")))
    env = Household("test", games=tmp_path, kinds=["light", "clean"])
    assert [task.tags for task in env.tasks("test")] == [("clean",), ("light",)]


def test_a_folder_without_games_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(GameError, match="alfworld-download"):
        Household("test", games=tmp_path)
    with pytest.raises(GameError, match="no folder"):
        Household("test", games=tmp_path / "absent")


def test_a_file_that_changed_under_a_task_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "game.pddl"
    file.write_text(write_problem(problem_of("train/tiny/1")))
    env = Household("test", games=tmp_path)
    task = env.tasks("test")[0]
    file.write_text(write_problem(problem_of("train/tiny/2")) + "; another one\n")
    with pytest.raises(GameError, match="has changed"):
        env.reset(seed=0, options={"task": task})
    with pytest.raises(GameError, match="cannot be read"):
        load_game(tmp_path / "absent.pddl")
