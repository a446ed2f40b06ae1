"""telecom with a customer who holds the phone: who may do what, what is counted, and the official reward."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import absent
from needs_files import NO_GOLDEN

from manyturn.envs.benchmarks.tau.rule_customer import CustomerOptions
from manyturn.envs.benchmarks.tau.v2.env import MOST_ERRORS, Tau2Bench
from manyturn.envs.benchmarks.tau.v2.model_customer import MARKS
from manyturn.envs.benchmarks.tau.v2.telecom.agent_tools import TelecomTools
from manyturn.envs.benchmarks.tau.v2.telecom.phone import TOOLS, TelecomUserTools
from manyturn.envs.benchmarks.tau.v2.telecom.phone_customer import PhoneCustomer
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle
from manyturn.envs.tools.calls import call_text, is_call, read_calls
from manyturn.envs.tools.tool import tool_of
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError
from manyturn.envs.users.tool_use import MOST_CALLS

BYE = "Goodbye."
BILL, FLY = "test/telecom/bill", "train/telecom/fly"


def telecom(folder: Path, user: Any = "agenda", **options: Any) -> Tau2Bench:
    return Tau2Bench("test", folder, "telecom", user=user, pinned=False, **options)


class Hands(User):
    """Does the calls that the agent's words hold, and leaves at a goodbye, which may stand behind them."""

    name = "hands"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.seen: list[str] = []
        return "Hello."

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        calls = json.loads(text) if text.startswith("[") else [text]
        self.leaves = calls[-1] == BYE
        calls = [call for call in calls if call != BYE]
        return Heard("", calls=calls) if text.startswith("[") else Heard("Yes?", done=self.leaves)

    def see(self, results: Sequence[str]) -> Heard:
        self.seen += results
        return Heard("I did it.", done=self.leaves)

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        pass


def with_hands(folder: Path, task: str = BILL, **options: Any) -> Tau2Bench:
    env = telecom(folder, **options)
    env.user = Hands()
    env.reset(seed=0, options={"task": task})
    return env


def asks(*calls: str) -> str:
    return json.dumps(calls)


# ---- the official reward ---------------------------------------------------------------------------------------------


def test_agent_and_customer_reach_the_recorded_state_and_reward_each_by_its_own_tools(
    official: Path, golden: Callable[[str], dict[str, Any]]
) -> None:
    """Every recorded telecom task: answers, both databases and reward are those of one who holds all tools."""
    env = Tau2Bench("test", official, "telecom", user="agenda")
    env.user = hands = Hands()
    tasks = {task.id.split("/", 2)[2]: task for split in env.splits for task in env.tasks(split)}
    recorded = [one for one in golden("tau2_bench_replay")["tasks"] if one["domain"] == "telecom"]
    if not recorded:
        absent("GOLDEN", NO_GOLDEN)
    for one in recorded:
        env.reset(seed=0, options={"task": tasks[one["task"]].id})
        for act in one["actions"]:
            call = call_text(act["name"], **act["arguments"])
            by_user = act["requestor"] == "user"
            text = env.step(asks(call) if by_user else call)[0]
            answer = hands.seen[-1] if by_user else text
            assert hashlib.sha256(answer.encode()).hexdigest()[:16] == act["result_sha256"], (one["task"], act["name"])
        _, reward, terminated, _, info = env.step(BYE)
        assert (reward, terminated, info["errors"]) == (1.0, True, 0), (one["task"], info["parts"])
        desk = env._desk
        assert (desk.db.digest(), desk.phone_db.digest()) == (one["final_db_hash"], one["final_user_db_hash"])
        assert info["user_rounds"] == sum(act["requestor"] == "user" for act in one["actions"])


def test_the_expert_and_the_customer_by_rules_solve_the_official_tasks_and_who_does_nothing_solves_none(
    official: Path,
) -> None:
    env = Tau2Bench("test", official, "telecom", user="agenda")
    for split in env.splits:
        for task in env.tasks(split)[:: 1 if split == "small" else 3]:
            for policy, due in ((env.expert, 1.0), (lambda: "Please wait.", 0.0)):
                env.reset(seed=1, options={"task": task.id})
                reward, ended = 0.0, False
                while not ended:
                    _, reward, terminated, truncated, info = env.step(policy())
                    ended = terminated or truncated
                assert (reward, info["errors"]) == (due, 0), (task.id, info["parts"])


# ---- who may do what -------------------------------------------------------------------------------------------------


def test_the_agent_cannot_touch_the_phone_nor_the_customer_the_desk(small: Path) -> None:
    env = with_hands(small)
    assert len(env.tools) == 13 and not {one["function"]["name"] for one in env.tools} & set(TOOLS)
    before = env._desk.save()
    text, _, _, _, info = env.step(call_text("toggle_airplane_mode"))
    assert text.startswith("Error: no tool 'toggle_airplane_mode'") and not info["understood"]
    env.step(asks(call_text("resume_line", customer_id="C1", line_id="L1")))
    assert env.user.seen[0].startswith("Error: no tool 'resume_line'")
    assert env._desk.save() == before and env._errors == 2


def test_the_agent_reads_what_the_customer_says_and_not_what_its_tools_answer(small: Path) -> None:
    env = with_hands(small)
    text = env.step(asks(call_text("check_status_bar"), call_text("check_sim_status")))[0]
    assert text == "I did it." and env.user.seen == [
        "Status Bar: ✈️ Airplane Mode | 🔋 80%",
        "Your SIM card is active and working.",
    ]


def test_the_policy_of_a_dialogue_is_not_that_of_solo_mode(small: Path) -> None:
    assert telecom(small).instructions.startswith("<main_policy>\nBe kind to the customer.\n")
    assert telecom(small, None).instructions.startswith("<main_policy>\nBe kind.\n")


# ---- what is counted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "",
        "nonsense",
        "{",
        '{"name": "check_app_status", "arguments": {}, "name": "x"}',
        '{"name": "check_app_status", "arguments": NaN}',
        '{"name": "__init__", "arguments": {}}',
        '{"name": "data_works", "arguments": {}}',
        '{"name": "check_app_status", "arguments": {"self": 1}}',
        '[{"name": "check_status_bar", "arguments": {}}, {"name": "check_status_bar", "arguments": {}}]',
        f'{{"name": "check_app_status", "arguments": {"[" * 5000}{"]" * 5000}}}',
    ],
)
def test_whatever_the_customer_calls_is_answered_and_counted_as_an_error(call: str, small: Path) -> None:
    env = with_hands(small)
    _, reward, terminated, _, info = env.step(asks(call))
    assert (reward, terminated, info["errors"]) == (0.0, False, 1)
    assert env.user.seen[0].startswith("Error: ") and len(env.user.seen[0]) < 1500


def test_ten_failing_calls_of_both_end_an_episode_even_if_the_customer_leaves_content(small: Path) -> None:
    env = with_hands(small, FLY)
    env.step(asks(call_text("toggle_airplane_mode")))
    wrong = call_text("check_app_status")
    for _ in range(5):
        env.step(call_text("get_customer_by_id", customer_id="C9"))
    env.step(asks(*[wrong] * (MOST_ERRORS - 6)))
    assert env._errors == MOST_ERRORS - 1
    text, reward, terminated, _, info = env.step(asks(wrong, BYE))
    assert "Too many errors." in text and (reward, terminated, info["success"]) == (0.0, True, False)


def test_the_customers_rounds_use_up_the_turns(small: Path) -> None:
    look = asks(call_text("check_status_bar"))
    env = with_hands(small, FLY, max_turns=6)
    assert [env.step(look)[2] for _ in range(3)] == [False, False, True]
    env = with_hands(small, FLY, max_turns=6)
    assert env.step(asks(call_text("toggle_airplane_mode")))[2] is False
    assert env.step(BYE)[1] == 1.0
    env = with_hands(small, FLY, max_turns=3)
    env.step(asks(call_text("toggle_airplane_mode")))
    assert env.step(asks(call_text("check_status_bar"), BYE))[1:3] == (0.0, True)
    env = with_hands(small, FLY, max_turns=1)
    assert env.step(look)[2:4] == (False, True)


def test_a_customer_that_never_stops_calling_is_an_error_and_no_reward(small: Path) -> None:
    env = with_hands(small)
    env.step(asks(*[call_text("check_status_bar")] * MOST_CALLS))
    with pytest.raises(UserError, match=f"more than {MOST_CALLS} calls"):
        env.step(asks(*[call_text("check_status_bar")] * (MOST_CALLS + 1)))


# ---- a model in the customer's role ----------------------------------------------------------------------------------


def model_at(endpoint: Any, **options: Any) -> dict[str, Any]:
    return {"kind": "model", "model": "m", "base_url": endpoint.url, "wait": 0, **options}


def test_a_model_customer_uses_its_phone_speaks_and_leaves(small: Path, endpoint: Any) -> None:
    endpoint.says += ["My phone is dead.", ("check_status_bar", {}), ("toggle_airplane_mode", {})]
    endpoint.says += ["I switched it off.", "It works. ###STOP### Bye!"]
    env = telecom(small, model_at(endpoint))
    first, info = env.reset(seed=0, options={"task": FLY})
    assert first == "My phone is dead." and info["user"] == "model(m)"
    text, _, terminated, _, info = env.step("Please leave airplane mode.")
    assert (text, terminated, info["user_rounds"]) == ("I switched it off.", False, 2)
    text, reward, terminated, _, info = env.step("Does it work?")
    assert (text, reward, terminated) == ("It works.", 1.0, True) and info["parts"] == {"assertions": 1.0}
    assert [one["function"]["name"] for one in endpoint.requests[0]["tools"]] == list(TOOLS)
    roles = [message["role"] for message in endpoint.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user", *["assistant", "tool"] * 2, "assistant", "user"]
    assert endpoint.requests[-1]["messages"][5]["content"] == "Status Bar: ✈️ Airplane Mode | 🔋 80%"


def test_a_model_customer_is_told_its_scenario_and_persona_and_nothing_of_the_solution(
    small: Path, endpoint: Any
) -> None:
    endpoint.says += ["Hello."]
    env = telecom(small, model_at(endpoint))
    env.reset(seed=0, options={"task": BILL})
    system = endpoint.requests[0]["messages"][0]["content"]
    texts = ("You are in a hurry to bill.", "You have no service.", "You are Ada Stone", "you accept", *MARKS)
    assert all(text in system for text in texts)
    assert not any(text in system for text in (*TOOLS, "B9", "L1", "C1"))


def test_a_checkouts_guidelines_are_told_and_named(small: Path, tmp_path: Path, endpoint: Any) -> None:
    domains = tmp_path / "data" / "tau2" / "domains"
    domains.mkdir(parents=True)
    (domains / "telecom").symlink_to(small / "v2" / "telecom")
    guidelines = tmp_path / "data" / "tau2" / "user_simulator"
    guidelines.mkdir()
    (guidelines / "simulation_guidelines_tools.md").write_text("Play the customer.\n")
    endpoint.says += ["Hello."]
    env = telecom(tmp_path, model_at(endpoint))
    assert env.reset(seed=0, options={"task": BILL})[1]["user"] == "model(m), official guidelines"
    system = endpoint.requests[0]["messages"][0]["content"]
    assert system.startswith("Play the customer.\n\n<scenario>\nPersona:\n\tYou are in a hurry to bill.\nInstructions:")
    assert "\n\tReason for call:\n\t\tYou have no service.\n\tKnown info:\n" in system and "Unknown" not in system


@pytest.mark.parametrize("mark", ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"])
def test_every_official_mark_ends_the_dialogue(mark: str, small: Path, endpoint: Any) -> None:
    endpoint.says += ["Hello.", mark]
    env = telecom(small, model_at(endpoint))
    env.reset(seed=0, options={"task": BILL})
    assert env.step("You are being transferred.")[1:3] == (0.0, True)


def test_a_customer_that_leaves_before_the_agent_speaks_is_an_error(small: Path, endpoint: Any) -> None:
    endpoint.says += ["###STOP###"]
    args = {"data": str(small), "user": model_at(endpoint), "pinned": False}
    handle = EnvHandle("manyturn/Tau2Bench-v0", args)
    with pytest.raises(EnvError, match=r"UserError.*left before"):
        handle.reset(handle.tasks("test")[0], 1)


# ---- recordings and snapshots ----------------------------------------------------------------------------------------


def played(env: Tau2Bench, task: str, actions: Sequence[str] | None = None) -> tuple[list[tuple], list[str]]:
    env.reset(seed=3, options={"task": task})
    steps, played_actions = [], []
    while not steps or not (steps[-1][2] or steps[-1][3]):
        played_actions.append(actions[len(played_actions)] if actions else env.expert())
        steps.append(env.step(played_actions[-1]))
    return steps, played_actions


def unnamed(steps: list[tuple]) -> list[tuple]:
    return [(*step[:4], {key: value for key, value in step[4].items() if key != "user"}) for step in steps]


def test_a_recorded_dialogue_plays_again_with_the_customers_calls(small: Path, tmp_path: Path, endpoint: Any) -> None:
    users = {"agenda": (FLY, {"kind": "agenda"}), "model(m)": (BILL, model_at(endpoint))}
    endpoint.says += [("check_status_bar", {}), "No service.", ("make_payment", {}), ("make_payment", {}), "Paid."]
    endpoint.says += [("toggle_airplane_mode", {}), "Off.", ("reboot_device", {}), "It works. ###STOP###"]
    for name, (task, user) in users.items():
        file = str(tmp_path / f"{name}.jsonl")
        recorded, played_actions = played(telecom(small, {**user, "record": file}), task)
        assert recorded[-1][1] == 1.0
        replay = telecom(small, {"kind": "replay", "file": file})
        replayed, _ = played(replay, task, played_actions)
        assert unnamed(replayed) == unnamed(recorded) and replayed[-1][4]["user"] == f"replay of {name}"
        replay.reset(seed=3, options={"task": task})
        spoken = next(number for number, action in enumerate(played_actions) if not is_call(action))
        for action in played_actions[:spoken]:
            replay.step(action)
        replay._desk.phone.toggle_airplane_mode()
        replay._desk.phone.surround(payment_request=None)
        with pytest.raises(UserError, match=r"tools' answers differ.*record again"):
            replay.step(played_actions[spoken])


def test_a_dialogue_continues_from_a_snapshot_elsewhere(small: Path) -> None:
    env, copy = telecom(small), telecom(small)
    env.reset(seed=5, options={"task": BILL})
    ended = False
    while not ended:
        copy.restore(env.snapshot())
        action = env.expert()
        assert copy.expert() == action
        here, there = env.step(action), copy.step(action)
        assert here == there
        ended = here[2] or here[3]


# ---- the customer by rules -------------------------------------------------------------------------------------------

SCENARIO = {
    "reason_for_call": "Your phone has no service.",
    "known_info": "You are Ada Stone with phone number 555. You are currently abroad in France.",
    "task_instructions": "You are willing to refuel 2.0 GB of data, but you do not want to change your plan.",
}
READS = "check_status_bar"


def customer(patience: int = 8, **scenario: str) -> PhoneCustomer:
    tools = [tool_of(getattr(TelecomUserTools, name)).schema for name in TOOLS]
    made = PhoneCustomer(CustomerOptions(patience=patience), tools, TelecomTools.WRITES | TelecomUserTools.WRITES)
    made.begin(Task("test/telecom/x", "test", {"scenario": {**SCENARIO, **scenario}}), np.random.default_rng(0))
    return made


NO_NAMES = st.text(max_size=60).filter(lambda text: not any(name in text for name in TOOLS))


@given(NO_NAMES, st.sampled_from(TOOLS), NO_NAMES)
def test_it_calls_the_tool_that_is_named_and_no_other(before: str, name: str, after: str) -> None:
    heard = customer().hear(f"{before} {name} {after}")
    needs = customer()._parameters[name]["required"]
    if not needs:
        assert [read_calls(call)[0].name for call in heard.calls] == [name]
    elif not heard.calls:
        assert heard.utterance.startswith(f"For {name} you must tell me: ")


@given(NO_NAMES)
def test_told_no_name_it_only_looks_whether_its_trouble_is_over(text: str) -> None:
    assert customer().hear(text).calls == (call_text(READS),)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Call toggle_data_saver_mode() please.", call_text("toggle_data_saver_mode")),
        ("First toggle_wifi, then toggle_data.", call_text("toggle_wifi")),
        ("`set_network_mode_preference('4g_only')`", call_text("set_network_mode_preference", mode="4g_only")),
        (
            "grant_app_permission(messaging, permission: `sms`, force=yes)",
            call_text("grant_app_permission", app_name="messaging", permission="sms"),
        ),
    ],
)
def test_it_reads_arguments_by_name_and_by_place(text: str, call: str) -> None:
    heard = customer().hear(text)
    assert heard.calls == (call,) and is_call(call)


@pytest.mark.parametrize(
    ("question", "fact", "secret"),
    [
        ("May I have your phone number?", "phone number 555", "France"),
        ("Where are you?", "abroad in France", "555"),
        ("How much data do you want to refuel?", "I am willing to refuel 2.0 GB", "555"),
        ("Shall I go ahead?", "Yes, please go ahead.", "555"),
    ],
)
def test_asked_it_tells_what_it_knows_and_no_more(question: str, fact: str, secret: str) -> None:
    made = customer()
    made.hear(question)
    utterance = made.see(["Status Bar: 📵 No Signal"]).utterance
    assert fact in utterance and secret not in utterance


@pytest.mark.parametrize(
    ("reason", "tool", "answers"),
    [
        (SCENARIO["reason_for_call"], READS, ("Status Bar: 📵 No Signal", "Status Bar: 📶² Fair")),
        ("You are unable to send MMS messages.", "can_send_mms", ("app cannot send", "app can send")),
        ("You want excellent mobile data.", "run_speed_test", ("55 Mbps (Good).", "275.00 Mbps (Excellent).")),
    ],
)
def test_it_leaves_when_its_own_tool_shows_what_it_wants(reason: str, tool: str, answers: Sequence[str]) -> None:
    for answer in answers:
        made = customer(reason_for_call=reason)
        assert made.hear("Please look.").calls == (call_text(tool),)
        assert made.see([answer]).done == (answer == answers[1])


def test_it_leaves_when_handed_over_and_gives_up_when_patience_ends() -> None:
    assert customer().hear("Please hold.", {"transferred": True}).done
    made = customer(patience=3)
    done = []
    for _ in range(3):
        made.hear("Hm.")
        done.append(made.see(["Status Bar: 📵 No Signal"]).done)
    assert done == [False, False, True]
