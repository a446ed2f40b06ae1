"""Credit is a library of its own: what its page shows runs, in any trainer, without torch."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import manyturn.credit as mc
from manyturn.recipes import load_recipe, methods

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "credit.md").read_text(encoding="utf-8")


def test_the_library_imports_no_torch():
    heavy = {"torch", "transformers", "pyarrow", "scipy", "peft"}
    code = (
        f"import sys, manyturn.credit as mc; mc.ADVANTAGES.names(), mc.REWARDS.names(), mc.MODULATIONS.names(); "
        f"print({heavy} & set(sys.modules) or '')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == ""


def test_the_room_of_credit_never_names_torch():
    for path in (ROOT / "trainers" / "credit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "torch"], path


def test_the_examples_of_the_page_run_as_they_stand():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    found = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert found.returncode == 0, found.stderr
    numbers = ast.literal_eval(found.stdout)
    # The first three replies are the better attempt's: it went on to the kitchen where the other went to the garden.
    assert len(numbers) == 5 and min(numbers[:3]) > 0 > max(numbers[3:])


def test_the_configuration_that_the_page_calls_the_recipes_is_the_recipes():
    """A method's defaults are not a recipe's settings: GiGPO's levels are not divided by their spread."""
    [block] = re.findall(r"^```python\n(as_the_recipe.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    script = f"import manyturn.credit as mc\n{block}\nprint(as_the_recipe.model_dump_json())"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    recipe = mc.CreditConfig(**load_recipe("gigpo")["credit"])
    assert json.loads(found.stdout) == recipe.model_dump(mode="json")
    assert recipe != mc.CreditConfig(advantage="gigpo")


def test_a_configuration_that_is_wrong_says_so_in_one_line():
    for options, told in (
        ({"advantage": "gigppo"}, "did you mean 'gigpo'"),
        ({"advantage": {"name": "gigpo", "gama": 1}}, "did you mean 'gamma'"),
        ({"advantage": {"name": "gigpo", "gamma": 2}}, "advantage.gamma: Input should be less than or equal to 1"),
        ({}, "advantage: Field required"),
    ):
        with pytest.raises(mc.ConfigError, match=re.escape(told)) as refused:
            mc.CreditConfig(**options)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", sorted(set(methods()) - set(mc.ADVANTAGES.names()) - {"epo"}))
def test_a_recipe_that_is_no_stage_is_named_with_its_credit(name):
    credit = load_recipe(name).get("credit", {})
    with pytest.raises(mc.ConfigError, match=rf"{name} is a recipe") as refused:
        mc.CreditConfig(advantage=name)
    stages = [
        *credit.get("rewards", ()),
        *credit.get("modulation", ()),
        *[credit[it] for it in credit if it == "advantage"],
    ]
    assert not [stage["name"] for stage in stages if stage["name"] not in str(refused.value)]
    if credit:
        whole = mc.recipe_credit(name)
        assert {stage["name"] for stage in stages} <= {
            one.name for one in (*whole.rewards, whole.advantage, *whole.modulation)
        }
    else:
        with pytest.raises(mc.ConfigError, match="without credit"):
            mc.recipe_credit(name)


def test_every_token_of_a_turn_gets_the_turns_credit():
    batch = mc.TurnBatch.from_episodes([[0, 1], [0]], groups=["a", "a"], tokens=[[2, 0], [3]])
    earned = mc.credit(batch, mc.CreditConfig(advantage="grpo"))
    first, _, third = earned.advantage_K
    assert earned.advantage_T.tolist() == [first, first, third, third, third]


def test_the_examples_of_the_page_for_other_trainers_run_as_they_stand():
    page = (ROOT / "docs" / "credit-elsewhere.md").read_text(encoding="utf-8")
    blocks = re.findall(r"test_credit.py -->\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4 and len(blocks[0].splitlines()) <= 20
    script = "\n".join(blocks)
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.returncode == 0, found.stderr
    padded, gated, branches, shape = found.stdout.splitlines()
    first, *others = ast.literal_eval(gated)
    assert first > 0 > others[-1] == others[-2], "the steps of the failed attempt are not paid"
    ours, branch = ast.literal_eval(branches)[:2], ast.literal_eval(branches)[2:4]
    assert ours[1] > 0 > branch[1] and branch[0] == 0, "a repeated turn is not the branch's"
    better, worse = ast.literal_eval(padded)
    # Both began in the hall, which separates them at the first reply; where the environment spoke there is no credit.
    assert better == [0.95, 0.95, 0, 0.5, 0, 0, 0.5, 0.5] and worse == [-0.95, 0, 0, -0.5, -0.5, -0.5, 0, 0]
    assert shape == "(5, 2)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rewards": [0.0, 1.0]}, "rewards holds numbers: give a list for each episode"),
        ({"groups": ["a"]}, "groups has 1 entries for 2 episodes"),
        ({"truncated": [True]}, "truncated has 1 entries for 2 episodes"),
        ({"anchors": [["x", "y"], ["x", "y"]]}, "anchors: episode 1 has 2 entries for 1 turns"),
        ({"columns": {"value": [[0.1, 0.2]]}}, "value has 1 entries for 2 episodes"),
        ({"rewards": {"outcome": [[0, 1], [0]], "step": [[0], [0]]}}, "rewards 'step': episode 0 has 1 entries"),
    ],
)
def test_lists_that_do_not_fit_each_other_are_named(given, said):
    """A word on arrays that cannot be broadcast tells nobody which of their lists is too short."""
    with pytest.raises(ValueError, match=re.escape(said)):
        mc.TurnBatch.from_episodes(**({"rewards": [[0, 1], [0]], "groups": ["a", "b"]} | given))
