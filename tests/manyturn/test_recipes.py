"""Recipes are configurations that nobody may find broken on an expensive machine."""

import ast
import asyncio
import io
import itertools
import re
import tomllib
from pathlib import Path

import pytest
from rich.console import Console
from short_runs import resumed_to_the_bit

from manyturn import trainers
from manyturn.cli.pages.method_pages import (
    RecipeHead,
    method_rows,
    pieces,
    print_page,
    print_recipes,
    recipe_rows,
    telling_metrics,
)
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe, methods, named_recipe, names, whole_runs
from manyturn.recipes.stack import combined, stacked
from manyturn.trainers.recipe.config import configure, parse_config, to_toml
from manyturn.trainers.record.metrics import METRICS
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

MAZE = {"env": {"id": "manyturn/Maze-v0"}}
SHORT = {"env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 6}}}
# Curricula that choose between kinds of tasks need an environment that has several.
KINDS = {"env": {"id": "manyturn/Household-v0", "args": {"difficulty": "easy", "max_turns": 16}}}
# IGPO needs one that tells its true answer.
EIGHT = Path(__file__).parents[1] / "trainers" / "eight.py"
# Similarity compares situations that are texts.
DOORS = {"env": {"id": f"{EIGHT.with_name('doors.py')}:Doors"}}
# Strata of searches need an environment that has a tool to search with.
ROOM = {"env": {"id": f"{EIGHT.with_name('searches.py')}:Searches"}}
# An estimator learns from outcomes that differ, even those of so short a warm-up.
CHOOSING = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 8}}  # no reply is cut, so that all act
CHANCES = {"env": {"id": f"{EIGHT.with_name('chances.py')}:Chances"}, **CHOOSING}
# LOOP learns from episodes that differ, and iStar from pairs of them: here an untaught policy has both ends.
ODD = {"env": {"id": f"{EIGHT.with_name('odd_replies.py')}:OddReplies"}, **CHOOSING}
ENVS = {
    **{"dump": KINDS, "sec": KINDS, "igpo": {"env": {"id": f"{EIGHT}:Eight"}}, "gigpo-similarity": DOORS},
    **{"loop": ODD, "istar": ODD},
    **{"spa": CHANCES, "spa-alongside": CHANCES, "gigpo-spa-epo-gra": CHANCES},
    "stratified-search": ROOM,
}


def of_method(*names, env=MAZE, **changes):
    """The configuration of methods on an environment."""
    return configure(combined([named_recipe(name) for name in names]), env, changes)


def tiny(name, **changes):
    """A run of two steps that takes about a second."""
    recipe = load_recipe(name)
    alone = recipe.get("rollout", {}).get("group") == 1
    rollout = (
        {"tasks": 6}
        if alone
        else {"tasks": 3, "group": 3, "rounds": min(recipe.get("rollout", {}).get("rounds", 1), 2)}
    )
    exploration = {"episodes": 24, "passes": 2} if recipe.get("progress", {}).get("body") == "own" else {}
    if "horizon" in recipe.get("rollout", {}):
        rollout["horizon"] = {"every": 1}
    if "branching" in recipe.get("rollout", {}):
        rollout["branching"] = {"initial": 2}
    if "guidance" in recipe.get("rollout", {}):
        rollout["guidance"] = {"members": 2, **({"tiers": [0.5, 1.0]} if name == "scaf-grpo" else {})}
    if "tempering" in recipe.get("rollout", {}):
        rollout["tempering"] = {"members": 1}
    judge = {"judge": {"min_agreement": 0.0}} if "judge" in recipe else {}  # so short a warm-up has no success
    rises = recipe.get("learner", {}).get("lr_warmup", 0)
    sizes = {
        "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
        "agent": {"max_context": 512},
        "sampling": {"max_tokens": 8},
        "warmup": {
            "episodes": 24,
            "must_succeed": False,
            "batch": 4,
            "max_updates": 12,
            "check_every": 12,
            "check_episodes": 1,
        },
        "rollout": rollout,
        "learner": {"minibatch": 9, "lr_warmup": min(rises, 1)},
        "evaluation": {"limit": 2},
        "steps": 2,
        "checkpoint_every": 1,
        "device": "cpu",
        **judge,
    }
    if "pretraining" in recipe.get("value", {}):
        sizes["value"] = {"pretraining": {"episodes": 24, "passes": 2}}
    if exploration:
        sizes["progress"] = {"exploration": exploration}
    if ENVS.get(name) in (KINDS, ROOM, CHANCES):  # demonstrations that are too long, or teach all there is
        sizes["warmup"] = {"episodes": 0}
    return of_method(name, env=ENVS.get(name, SHORT), **overlay(sizes, changes))


def shown(show, *given, width=120) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(*given, console)
    return console.file.getvalue()


@pytest.mark.parametrize("name", names())
def test_recipe_is_valid_and_round_trips(name):
    config = of_method(name)
    assert parse_config(tomllib.loads(to_toml(config))) == config


@pytest.mark.parametrize("name", whole_runs())
def test_recipe_of_a_whole_run_names_an_environment_that_takes_its_arguments(name, request):
    from manyturn.envs.hosting.handle.env_handle import EnvHandle

    if name == "software-tiny":
        request.getfixturevalue("engine")
    for env in parse_config(load_recipe(name)).environments.values():
        handle = EnvHandle(env.id, env.args)
        assert len(handle.tasks("train")) > 0
        handle.close()


@pytest.mark.parametrize("name", methods())
def test_a_method_holds_only_what_it_is(name):
    """What belongs to a run stays the run's: its environment, its model, how it samples, warms up and is measured."""
    recipe = load_recipe(name)
    assert recipe.keys() <= {
        *(
            "rollout",
            "curriculum",
            "credit",
            "objective",
            "learner",
            "value",
            "progress",
            "implicit",
            "columns",
            "judge",
        )
    }
    assert not recipe.get("learner", {}).keys() & {"lr", "micro_tokens", "lora_rank"}


# Those of the default suite reach every place that a method can: heads, groups of one, rounds, regularisers, curricula.
OFTEN = {"gigpo", "ppo", "spo", "dapo", "sec", "gigpo-spa-epo-gra"}


@pytest.mark.deep
@pytest.mark.parametrize("name", [n if n in OFTEN else pytest.param(n, marks=pytest.mark.slow) for n in methods()])
def test_every_method_trains_and_logs_what_its_page_says(name, tmp_path):
    asyncio.run(train(tiny(name), tmp_path / "run"))
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert len(lines) == 2 and all(line["skipped_updates"] == 0 for line in lines)
    assert set(telling_metrics(name)) <= {key for line in lines for key in line}


def test_the_combined_method_goes_on_to_the_bit_after_a_kill(tmp_path):
    """Its gate, estimator, entropy history and KL reference are all in the checkpoint."""
    calm = resumed_to_the_bit(tiny("gigpo-spa-epo-gra", steps=4, checkpoint_every=2), tmp_path)
    assert "epo_reference" in read_metrics(calm)[-1] and "progress_loss" in read_metrics(calm)[-1]


# ---- recipes on top of each other


def test_any_recipe_goes_on_top_of_a_whole_run():
    below = load_recipe("quickstart")
    for name in methods():
        config = configure(stacked([below, load_recipe(name)]))
        assert config.env.id == "manyturn/Maze-v0" and config.warmup.noise == 1.0


def test_reward_stages_add_up_and_those_of_one_name_are_changed_in_place():
    whole = stacked([load_recipe(name) for name in ("quickstart", "ssl", "gra")])
    stricter = {"credit": {"rewards": [{"name": "invalid_penalty", "coef": 0.5}]}}
    rewards = configure(stacked([whole, stricter])).credit.rewards
    assert [stage.name for stage in rewards] == ["invalid_penalty", "tiers", "gated"] and rewards[0].coef == 0.5
    listed = configure(whole, {"credit": {"rewards": ["invalid_penalty"]}}).credit.rewards
    assert [stage.name for stage in listed] == ["invalid_penalty"], "a list on the command line is the list"


def test_a_stage_that_a_recipe_names_twice_is_still_refused():
    twice = {"credit": {"rewards": ["invalid_penalty", "invalid_penalty"]}}
    for recipes in ([twice], [twice, load_recipe("ssl")], [load_recipe("ssl"), twice]):
        with pytest.raises(ConfigError, match="named twice"):
            configure(stacked(recipes), MAZE)


def test_another_objective_keeps_the_regularisers():
    objective = of_method("gspo", "gigpo", "icepop").objective
    assert (objective.name, objective.kl.coef, objective.correction.floor) == ("gspo", 0.01, 0.5)


def test_epo_takes_the_place_of_an_entropy_bonus():
    for order in itertools.permutations(["gigpo", "epo"]):
        objective = of_method(*order).objective
        assert objective.entropy is None and objective.epo is not None and objective.kl is not None


def test_what_names_no_part_changes_the_default_one():
    default = configure({}, MAZE)
    config = of_method("epo")
    assert config.objective.high == default.objective.high and config.credit == default.credit
    assert configure(stacked([{"credit": {"advantage": {"gamma": 0.9}}}]), MAZE).credit.advantage.gamma == 0.9


def test_another_environment_takes_a_methods_wrappers_and_not_a_runs_arguments():
    costly = {"env": {"wrappers": [{"name": "turn_cost"}]}}
    for order in itertools.permutations([load_recipe("quickstart"), costly]):
        recipe = stacked(order, env="manyturn/GuessNumber-v0")
        env = configure(recipe, {"env": {"id": "manyturn/GuessNumber-v0"}}).env
        assert (env.id, env.args) == ("manyturn/GuessNumber-v0", {})
        assert [wrapper.name for wrapper in env.wrappers] == ["turn_cost"]


def test_of_two_whole_runs_the_later_ones_environment_counts():
    runs = [load_recipe("household-smollm2-lora"), load_recipe("quickstart")]
    assert configure(stacked(runs)).env.args == {"difficulty": "easy"}


def test_a_combination_may_be_mended_on_the_command_line():
    recipes = stacked([load_recipe("dapo"), load_recipe("spo")])
    with pytest.raises(ConfigError, match=r"rollout.rounds = 10"):
        configure(recipes, MAZE)
    assert configure(recipes, MAZE, {"rollout": {"rounds": 1}}).rollout.group == 1


def test_the_command_line_takes_several_recipes(command, tmp_path):
    words = [
        "train",
        "--recipe",
        "quickstart",
        "--recipe",
        "epo",
        "--recipe",
        "gspo",
        "--steps",
        "0",
        "--out",
        tmp_path / "run",
    ]
    smallest = ["--warmup.episodes", "0", "--evaluation.limit", "2", "--model.width", "16"]
    assert command(*words, *smallest).code == 0
    told = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert told["objective"]["name"] == "gspo" and told["objective"]["epo"]["kappa_l"] == 0.8


@pytest.mark.parametrize(
    "words", [["--recipe", "gigpo"], ["--recipe", "gigpo", "--env.workers", "1"], ["--steps", "3"]]
)
def test_a_method_without_an_environment_asks_for_one(command, words):
    ended = command("train", *words)
    assert ended.code == 2 and "which environment" in ended.err


# ---- the table and the pages


def test_every_recipe_is_listed_with_what_it_is():
    assert sorted(row["name"] for row in (*recipe_rows(), *method_rows())) == names()
    assert all(all(row.values()) and not row["about"].startswith("#") for row in (*recipe_rows(), *method_rows()))
    for row in method_rows():
        assert re.search(r"arXiv \d{4}\.\d{5}|, 20\d\d", row["paper"]), row


def test_no_recipe_is_cut_off_on_a_narrow_terminal():
    text = shown(print_recipes, width=60)
    assert "…" not in text and "2505.10978" in text and "reinforce-pp" in text


def lacking(text: str) -> set[str]:
    """Of what the text of a method's part has to hold, what it does not."""
    steps = re.findall(r"^(\d+)\. ", text.partition("\nImplementation:\n")[2].partition("\n\n")[0], re.MULTILINE)
    watched = re.findall(r"``(\w+)``", text.partition("\nWatch: ")[2])
    there = {
        "formula": re.search(r"\n\n    \S", text),
        "numbered details": len(steps) > 1 and steps == [str(number) for number in range(1, len(steps) + 1)],
        "paper and code": re.search(r"^Differences: \S", text, re.MULTILINE),
        "metrics": watched and set(watched) <= METRICS.keys(),
    }
    return {what for what, found in there.items() if not found}


@pytest.mark.parametrize("name", methods())
def test_a_methods_page_explains_each_of_its_parts(name):
    told = [piece for piece in pieces(name) if piece.place not in ("value", "progress", "judge", "objective.entropy")]
    assert told and {(piece.place, piece.name): lacking(piece.text) for piece in told if lacking(piece.text)} == {}


OF_PAPERS = {"rewards", "advantages", "modulations", "objectives", "curricula"}  # columns and loggers have none
FILES = (file for file in Path(trainers.__path__[0]).glob("*/*/*.py") if file.parent.name in OF_PAPERS)
STAGES = sorted(file for file in FILES if ".register(" in file.read_text())


@pytest.mark.parametrize("file", STAGES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_stage_explains_itself_though_no_recipe_names_it(file):
    assert lacking(ast.get_docstring(ast.parse(file.read_text())) or "") == set()


def test_a_text_that_lacks_something_is_told_so():
    whole = pieces("gigpo")[1].text
    assert lacking(whole) == set() and len(lacking("GiGPO.")) == 4
    assert lacking(whole.replace("    A_k", "A_k").replace("\n    ", "\n")) == {"formula"}
    assert lacking(whole.replace("\n2. ", "\n3. ")) == {"numbered details"}
    assert lacking(whole.replace("Differences: ", "")) == {"paper and code"}
    assert lacking(whole.replace("``mean_anchor_size``", "``mean_anchor``")) == {"metrics"}


@pytest.mark.parametrize("name", names())
def test_a_page_tells_formulas_options_and_metrics(name):
    text = shown(print_page, name)
    for piece in pieces(name):
        assert piece.text and piece.text in text
        assert all(option.about and option.name in text for option in piece.options), piece
    assert set(telling_metrics(name)) <= METRICS.keys() and RecipeHead.of(name).notes in text
    assert all(f"  {key}: " in text for key in telling_metrics(name))


def test_a_page_shows_what_a_recipe_changes(command):
    found = command("recipes", "gigpo")
    assert found.code == 0 and "norm(x) = x - mean" in found.out and '"mean_std_norm"' in found.out
    wrong = command("recipes", "gigppo")
    assert wrong.code == 2 and "did you mean 'gigpo'" in wrong.err


def test_a_page_shows_each_option_of_a_section_inside_a_section():
    [piece] = [piece for piece in pieces("spa") if piece.place == "progress"]
    options = {option.name: option.value for option in piece.options}
    assert options["exploration.episodes"] == "512" and options["exploration.lr"] == "-"
    assert "exploration" not in options and not any("[x]" in value for value in options.values())


def test_a_page_explains_a_recipes_wrappers(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('# Shorter episodes.\n[[env.wrappers]]\nname = "turn_cost"\ncost = 0.5\n')
    text = shown(print_page, str(file))
    assert "env.wrappers turn_cost" in text and "It does not preserve the optimal policy" in text
    assert re.search(r"cost\W+0\.5\W+0\.01\W+Reward taken away each turn", text)


def test_a_file_of_somebodys_own_has_a_page(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('# Mine: \u202ea turned one.\n[credit.advantage]\nname = "rloo"\n')
    text = shown(print_page, str(file))
    assert "<U+202E>a turned one" in text and "REINFORCE leave-one-out" in text


# ---- what a configuration refuses


def test_unknown_recipe_names_those_that_exist():
    with pytest.raises(ConfigError, match="quickstart"):
        load_recipe("quikstart")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"lerner": {}}, "learner"),
        ({"learner": {"lrr": 1}}, "lr"),
        ({"credit": {"advantage": "gipgo"}}, "gigpo"),
        ({"credit": {"advantage": {"name": "gigpo", "gama": 1}}}, "gamma"),
        ({"agent": {"format": {"name": "tagged", "tga": "x"}}}, "tag"),
        ({"steps": -1}, "steps"),
    ],
)
def test_a_typo_is_answered_with_the_right_word(wrong, hint):
    with pytest.raises(ConfigError, match=hint):
        parse_config(overlay({"env": {"id": "manyturn/Maze-v0"}}, wrong))


def test_another_kind_of_part_does_not_inherit_the_old_ones_options():
    """An override that changes GiGPO for GRPO must not carry gamma along, which GRPO does not know."""
    base = {"credit": {"advantage": {"name": "gigpo", "gamma": 0.9}}}
    merged = overlay(base, {"credit": {"advantage": {"name": "grpo"}}})
    assert merged == {"credit": {"advantage": {"name": "grpo"}}}


@pytest.mark.parametrize(
    ("given", "switch"),
    [
        (
            {"env": {"timeout": 5.0}},
            "env.timeout has no effect with env.workers = 0: set that as well, or leave it out",
        ),
        ({"learner": {"lora_alpha": 8}}, "with learner.lora_rank = 0"),
        ({"warmup": {"episodes": 0, "noise": 0.5}}, "with warmup.episodes = 0"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(given, switch):
    with pytest.raises(ConfigError, match=switch):
        configure({}, MAZE, given)


def test_igpos_other_baselines_can_be_trained_with():
    """What a configuration writes down, defaults included, is read again for each change on top."""
    config = configure({}, MAZE, {"credit": {"advantage": {"name": "igpo", "baseline": "turn"}}})
    assert configure(config.model_dump(mode="json"), {"steps": 3}).credit == config.credit


def test_a_recipes_section_can_be_switched_off():
    assert configure(load_recipe("quickstart"), {"warmup": {"episodes": 0}}).warmup.episodes == 0


def test_changing_one_entry_leaves_the_others_as_they_were():
    """A section's default may differ from the default of its class, and a part's options need its name."""
    plain = configure({}, MAZE)
    changed = configure({}, MAZE, {"agent": {"max_context": 512}, "model": {"width": 32}, "objective": {"low": 0.1}})
    assert changed.agent.instructions == plain.agent.instructions
    assert changed.objective.high == plain.objective.high and changed.model.width == 32
    assert configure({}, MAZE, {"credit": {"advantage": {"gamma": 0.9}}}).credit.advantage.gamma == 0.9


def test_another_environment_does_not_inherit_the_recipes_arguments():
    config = configure(load_recipe("quickstart"), {"env": {"id": "manyturn/GuessNumber-v0"}})
    assert config.env.args == {} and config.warmup.noise == 1.0
