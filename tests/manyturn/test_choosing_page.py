"""docs/choosing-credit.md prints figures that its code does not, or names a recipe or an option that does not exist."""

import re
import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from manyturn.recipes import names
from manyturn.trainers.record.metrics import METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "choosing-credit.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> dict:
    """What the page's Python leaves behind, and what it prints."""
    file = tmp_path_factory.mktemp("page") / "choosing.py"
    file.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)))
    out = StringIO()
    with redirect_stdout(out):
        found = runpy.run_path(str(file))
    return {**found, "printed": out.getvalue()}


def test_the_figures_are_what_the_code_prints(ran):
    assert ran["printed"] == "".join(re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def test_the_choice_that_is_said_to_gain_nothing_gains_nothing(ran):
    """GRPO's advantage to the last bit, at any weight and discount; with the maze's own anchors it is another one."""
    credit, anchors = ran["credit"], ran["anchors"]
    for normalised, mode in ((False, "mean_norm"), (True, "mean_std_norm")):
        grpo = credit(anchors["the text"], name="grpo", std=normalised).advantage_K
        assert (grpo != 0).any()
        for weight, gamma in ((1.0, 0.95), (5.0, 0.5)):
            gigpo = {"name": "gigpo", "mode": mode, "turn_weight": weight, "gamma": gamma}
            assert (credit(anchors["a number on each page"], **gigpo).advantage_K == grpo).all()
            assert (credit(anchors["the maze's own"], **gigpo).advantage_K != grpo).any()


def test_recipes_metrics_and_options_of_the_page_exist():
    table = PAGE.partition("## Look before")[0] + PAGE.partition("## Attempts")[2]
    quoted = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", table))
    assert len(quoted & set(names())) >= 14
    assert {"singleton_anchors", "mean_anchor_size", "groups_without_signal", "value_explained"} <= METRICS.keys()
    assert quoted - set(names()) <= {"compared", "credited", "parts", "success", "beta"}
