"""Whatever an agent writes, an episode goes on or ends with the official reward."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyturn.envs.benchmarks.tau.files import DataError
from manyturn.envs.benchmarks.tau.service_env import ServiceEnv
from manyturn.envs.benchmarks.tau.v1.env import TauBench
from manyturn.envs.benchmarks.tau.v2.env import MOST_ERRORS, Tau2Bench
from manyturn.envs.tools.calls import call_text
from manyturn.envs.users.protocol import Heard

DONE = call_text("done")


def retail(folder: Path, **options: Any) -> TauBench:
    return TauBench("test", folder, pinned=False, **options)


def telecom(folder: Path, **options: Any) -> Tau2Bench:
    return Tau2Bench("test", folder, "telecom", pinned=False, **options)


def played(env: ServiceEnv, task: str) -> tuple[float, dict[str, Any]]:
    """The expert's return and the last info."""
    env.reset(seed=3, options={"task": task})
    while True:
        _, reward, terminated, truncated, info = env.step(env.expert())
        if terminated or truncated:
            return reward, info


def test_the_expert_succeeds_in_every_task(small) -> None:
    for env in (retail(small), telecom(small)):
        for split in env.splits:
            for task in env.tasks(split):
                reward, info = played(env, task.id)
                assert reward == 1.0 and info["success"] and all(info["parts"].values()), task.id


@pytest.mark.parametrize(
    ("domain", "kind"), [("retail", TauBench), ("airline", TauBench), ("retail", Tau2Bench), ("telecom", Tau2Bench)]
)
def test_the_expert_succeeds_with_official_tasks(domain: str, kind: Any, official) -> None:
    env = kind("test", official, domain)
    for task in env.tasks("test")[::8]:
        reward, info = played(env, task.id)
        assert reward == 1.0, (task.id, info["parts"])


def test_saying_goodbye_at_once_is_paid_only_where_nothing_was_to_be_done(small) -> None:
    env, paid = retail(small), []
    for task in env.tasks("test"):
        env.reset(seed=0, options={"task": task.id})
        ended = False
        while not ended:
            _, reward, ended, truncated, _ = env.step("Goodbye.")
            assert not truncated
        paid.append(reward)
    assert paid == [0.0, 0.0, 1.0]


def test_a_transfer_ends_tau_bench_with_what_was_done_so_far(small) -> None:
    env = retail(small)
    env.reset(seed=0, options={"task": "test/retail/0"})
    env.step(call_text("cancel_pending_order", order_id="#W1000001", reason="no longer needed"))
    text, reward, terminated, _, _ = env.step(call_text("transfer_to_human_agents", summary=""))
    assert (text, reward, terminated) == ("Transfer successful", 1.0, True)


def test_gold_actions_that_were_done_by_other_means_count(small) -> None:
    """The database decides, not the calls: an order looked at twice, an address changed and changed back."""
    env = retail(small)
    env.reset(seed=0, options={"task": "test/retail/0"})
    user = env._desk.db["users"]["bob_stone_1234"]
    moved = dict(user["address"]) | {"city": "Lima"}
    for address in (moved, user["address"]):
        env.step(call_text("modify_user_address", user_id="bob_stone_1234", **address))
    env.step(call_text("cancel_pending_order", order_id="#W1000001", reason="no longer needed"))
    _, reward, *_ = env.step(call_text("transfer_to_human_agents", summary=""))
    assert reward == 1.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"order_id": "#W9", "reason": "no longer needed"}, "Error: order not found"),
        ({"order_id": "#W1000001", "reason": "bored"}, "Error: invalid reason"),
        ({"order_id": "#W1000002", "reason": "no longer needed"}, "Error: non-pending order cannot be cancelled"),
        ({"order_id": ["#W9"], "reason": "x"}, "Error: unhashable type: 'list'"),
        ({}, "Error: CancelPendingOrder.invoke() missing 2 required positional arguments: 'order_id' and 'reason'"),
        (
            {"order_id": "#W9", "reason": "", "x": 1},
            "Error: CancelPendingOrder.invoke() got an unexpected keyword argument 'x'",
        ),
    ],
)
def test_refusals_have_the_originals_words(arguments: dict, text: str, small) -> None:
    env = retail(small)
    env.reset(seed=0, options={"task": "test/retail/0"})
    assert env.step(call_text("cancel_pending_order", **arguments))[0] == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e9, 1e9) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_call_breaks_the_desk(small, data) -> None:
    env = data.draw(st.sampled_from([retail, telecom]))(small)
    env.reset(seed=0)
    for _ in range(3):
        schema = data.draw(st.sampled_from(env.tools))["function"]
        ids = ["#W1000001", "ada_stone_1234", "C1", "L1", "B9", "9000000001", ["9000000001"], "gift_card_11111"]
        names = data.draw(st.sampled_from(_names(schema["name"])))
        arguments = {name: data.draw(json_values | st.sampled_from(ids)) for name in names}
        text, _, terminated, *_ = env.step(call_text(schema["name"], **arguments))
        assert isinstance(text, str)
        json.dumps(env._desk.save())
        if terminated:
            break


def _names(tool: str) -> list[list[str]]:
    from manyturn.envs.benchmarks.tau.v1.retail import RetailTools
    from manyturn.envs.benchmarks.tau.v2.telecom.agent_tools import TelecomTools
    from manyturn.envs.benchmarks.tau.v2.telecom.phone import TelecomUserTools

    owners = [RetailTools, TelecomUserTools, TelecomTools]
    functions = [getattr(owner, tool) for owner in owners if hasattr(owner, tool)]
    parameters = [list(one.__code__.co_varnames[1 : one.__code__.co_argcount]) for one in functions] or [[]]
    return [*parameters, [], ["surprise"], *([one] for one in ("self", "data", "function", "name", "by"))]


@pytest.mark.parametrize("make", [retail, telecom])
def test_an_episode_continues_from_a_snapshot_elsewhere(make: Any, small) -> None:
    env, copy = make(small), make(small)
    for task in env.tasks("test"):
        env.reset(seed=5, options={"task": task.id})
        ended = False
        while not ended:
            copy.restore(env.snapshot())
            action = env.expert()
            assert copy.expert() == action
            here, there = env.step(action), copy.step(action)
            assert here == there and here[4]["anchor"] == there[4]["anchor"]
            ended = here[2] or here[3]


def test_a_recorded_customer_by_rules_plays_again(small, tmp_path: Path) -> None:
    file = str(tmp_path / "users.jsonl")
    user = {"kind": "agenda", "record": file}
    first = [played(retail(small, user=user), f"test/retail/{number}") for number in range(3)]
    replayed = retail(small, user={"kind": "replay", "file": file})
    for number, (reward, info) in enumerate(first):
        again, last = played(replayed, f"test/retail/{number}")
        assert (again, last["turn"], last["user"]) == (reward, info["turn"], "replay of agenda")


def test_solo_mode_has_calls_alone_and_ends_when_done(small) -> None:
    env = telecom(small)
    first, info = env.reset(seed=0, options={"task": "test/telecom/bill"})
    assert "No service (bill)." in first and info["user"] == "solo"
    text, _, terminated, _, info = env.step("Hello?")
    assert text.startswith("Error: ") and not terminated and not info["understood"]
    _, reward, terminated, _, info = env.step(DONE)
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert info["parts"] == {"assertions": 0.0, "actions": 0.0}


def test_a_fixed_phone_without_the_required_calls_is_no_success_where_calls_are_required(small) -> None:
    env = telecom(small)
    env.reset(seed=0, options={"task": "test/telecom/bill"})
    for name, arguments in (
        ("resume_line", {"customer_id": "C1", "line_id": "L1"}),
        ("toggle_airplane_mode", {}),
        ("reboot_device", {}),
    ):
        env.step(call_text(name, **arguments))
    info = env.step(DONE)[4]
    assert info["parts"] == {"assertions": 1.0, "actions": 0.0} and not info["success"]


def test_ten_failing_calls_end_tau2_bench_without_reward(small) -> None:
    env = telecom(small)
    env.reset(seed=0, options={"task": "test/telecom/bill"})
    for number in range(1, MOST_ERRORS + 1):
        _, reward, terminated, _, info = env.step(call_text("get_customer_by_id", customer_id="C9"))
        assert reward == 0.0 and terminated == (number == MOST_ERRORS)
    assert info["success"] is False and info["errors"] == MOST_ERRORS


def test_paying_a_bill_reaches_the_desk_and_a_suspended_line_the_phone(small) -> None:
    env = telecom(small)
    env.reset(seed=0, options={"task": "test/telecom/bill"})
    assert "Overdue" in env.step(call_text("get_details_by_id", id="B9"))[0]
    assert env.step(call_text("make_payment"))[0] == "You do not have a payment request."
    env.step(call_text("send_payment_request", customer_id="C1", bill_id="B9"))
    assert "bill B9 of 40.0 USD" in env.step(call_text("check_payment_request"))[0]
    env.step(call_text("make_payment"))
    assert "Paid" in env.step(call_text("get_details_by_id", id="B9"))[0]
    env.step(call_text("toggle_airplane_mode"))
    assert "No Signal" in env.step(call_text("reboot_device"))[0]
    env.step(call_text("resume_line", customer_id="C1", line_id="L1"))
    assert "Excellent | 5G" in env.step(call_text("reboot_device"))[0]


def test_a_broken_vpn_of_one_episode_slows_no_other(small) -> None:
    env = telecom(small)
    env.reset(seed=0, options={"task": "train/telecom/fly"})
    env._desk.phone.break_vpn()
    assert "PerformanceLevel.POOR: 'poor'" in env.step(call_text("check_vpn_status"))[0]
    env.reset(seed=0, options={"task": "train/telecom/fly"})
    env.step(call_text("connect_vpn"))
    assert "PerformanceLevel.EXCELLENT: 'excellent'" in env.step(call_text("check_vpn_status"))[0]


def test_parts_that_only_a_model_could_judge_are_named_and_not_made_up(official) -> None:
    env = Tau2Bench("test", official, "retail")
    marked = [task for task in env.tasks("test") if task.params["not_judged"]]
    assert len(marked) == 11
    _, info = played(env, marked[0].id)
    assert info["not_judged"] == ["NL_ASSERTION"] and set(info["parts"]) == {"database"}


def test_a_model_customer_is_told_its_task_and_nothing_of_the_reference_solution(official) -> None:
    heard: list[tuple] = []
    model = {"kind": "model", "model": "any", "base_url": "http://127.0.0.1:9"}
    for env in (TauBench("test", official, user=model), Tau2Bench("test", official, "airline", user=model)):
        env.user.begin = lambda task, rng: ""
        env.user.hear = lambda *arguments: heard.append(arguments) or Heard("Go on.")
        task = env.tasks("test")[0]
        env.reset(seed=0, options={"task": task.id})
        env.step("Hello!")
        brief, scenario = env.brief(task), task.params["scenario"]
        texts = [scenario] if isinstance(scenario, str) else filter(None, scenario.values())
        assert all(" ".join(text.split()) in " ".join(brief.split()) for text in texts)
        assert env.reset(seed=0)[1]["user"] == "model(any)"
    assert heard == [("Hello!",)] * 2


def test_splits_are_official_and_share_no_task(official) -> None:
    for env in (TauBench("dev", official), Tau2Bench("small", official), Tau2Bench("train", official, "airline")):
        contents = [{task.content for task in env.tasks(split)} for split in env.splits]
        assert len(set().union(*contents)) == sum(map(len, contents))


def test_a_strange_customer_a_strange_domain_and_a_strange_split_are_told(small) -> None:
    with pytest.raises(ValueError, match="unknown user 'agneda'"):
        telecom(small, user="agneda")
    with pytest.raises(ValueError, match="choose retail, airline"):
        TauBench("test", small, "bank", pinned=False)
    with pytest.raises(ValueError, match="no split 'small'"):
        TauBench("small", small, pinned=False)


def test_files_of_another_release_are_refused(small, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not the file of the release"):
        TauBench("test", small)
    with pytest.raises(DataError, match="git clone"):
        TauBench("test", tmp_path)
    with pytest.raises(DataError, match="do not come with this package"):
        TauBench("test")
