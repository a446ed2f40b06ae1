"""An audit of judges in which the judge makes no difference, or noise does no harm."""

from benchmarks.credit import judge_audit


def test_a_judge_that_knows_the_expert_is_credit_for_turns_and_a_coin_is_not():
    sizes = {**judge_audit.SIZES, "tasks": 4, "group": 4, "steps": 9000}
    rows = judge_audit.survey("JudgedMaze", 0.5, {}, sizes)
    assert rows["0"]["agreement"] > rows["0.5"]["agreement"]
    plain, capo = (rows["0"]["methods"][name]["correlation"][0] for name in ("grpo", "capo"))
    assert capo > plain + 0.1
    assert rows["0.5"]["methods"]["capo"]["correlation"][0] < capo
    assert rows["0.5"]["methods"]["grpo"] == rows["0"]["methods"]["grpo"], "it reads no verdict"
