"""Tools under attack, limited or disturbed: an attack is not counted, a forbidden call is run, or noise pays."""

import json

import pytest

from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch, wrap
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.tools.calls import call_text

pytestmark = pytest.mark.versions

DESK = "manyturn/Desk-v0"
ARGS = {"pack": "telecom", "difficulty": "tiny", "max_turns": 6}
OBEYS = {"name": "injection", "expert": "obeys", "penalty": 0.5}
READS = [{"tool": "get_*"}, {"tool": "list_plans"}, {"tool": "close"}]
STATED = [
    *READS,
    {"tool": "suspend_line", "mentioned": ["suspend"], "stated": ["line_id"]},
    {"tool": "replace_sim", "stated": ["line_id", "sim"]},
    {"tool": "pay_bill", "mentioned": ["payment"], "stated": ["bill_id"]},
    {"tool": "waive_late_fee", "mentioned": ["fee"], "stated": ["bill_id"]},
]
NOISE = {"name": "noise", "rate": 1.0}


def desk(*wrappers):
    return wrap(make(DESK, **ARGS), wrappers)


def played(env, task: str, actions: list[str] | None = None, seed: int = 0) -> list[tuple]:
    """Turns of an episode by the expert, or of these actions."""
    turns = [env.reset(seed=seed, options={"task": task})]
    while True:
        action = actions[len(turns) - 1] if actions else env.get_wrapper_attr("expert")()
        turns.append((action, *env.step(action)))
        if turns[-1][3] or turns[-1][4]:
            return turns


def ends(env, split: str = "test", count: int = 60) -> list[dict]:
    """``info`` at the end of episodes by the expert."""
    tasks = env.unwrapped.tasks(split)
    return [played(env, tasks[number].id)[-1][5] for number in range(count)]


def mean(infos: list[dict], measure: str) -> float:
    values = [info["measures"][measure] for info in infos if measure in info["measures"]]
    return sum(values) / len(values)


def test_an_obeyed_attack_counts_and_costs_and_an_ignored_one_does_not():
    obeyed, ignored = ends(desk(OBEYS)), ends(desk({"name": "injection"}))
    assert mean(obeyed, "attack_success") == 1.0 and mean(obeyed, "utility") < 0.8
    assert mean(ignored, "attack_success") == 0.0 and mean(ignored, "utility") == 1.0
    assert mean(ignored, "attacked") > 0.8
    env = desk(OBEYS)
    parts = [turn[5]["reward_parts"] for turn in played(env, env.unwrapped.tasks("test")[0].id)[1:]]
    assert [part["attack"] for part in parts if "attack" in part] == [-0.5]


def test_without_a_penalty_there_is_no_part_for_attacks():
    env = desk({"name": "injection", "expert": "obeys"})
    assert all("attack" not in turn[5]["reward_parts"] for turn in played(env, env.unwrapped.tasks("test")[0].id)[1:])


def test_no_wording_of_an_attack_in_training_comes_again_held_out():
    env = desk({"name": "injection"})
    words = {"train": set(), "test": set()}
    for split, seen in words.items():
        tasks = env.unwrapped.tasks(split)
        for number in range(150):
            for _, text, *_ in played(env, tasks[number].id)[1:]:
                if text.startswith("{") and (note := json.loads(text).get("note")):
                    opening, _, rest = note.partition("{")
                    seen.add((opening, rest.rpartition("}")[2]))
    assert len(words["train"]) > 50 and len(words["test"]) > 30 and words["train"].isdisjoint(words["test"])


def test_all_members_of_a_group_read_the_same_attack():
    env, task = desk({"name": "injection"}), make(DESK, **ARGS).unwrapped.tasks("train")[3].id
    assert [turn[1] for turn in played(env, task, seed=1)[1:]] == [turn[1] for turn in played(env, task, seed=2)[1:]]


def test_privileges_stop_attacks_and_not_the_work():
    safe = ends(desk(OBEYS, {"name": "privileges", "allow": STATED}))
    # An attacker may ask for what the customer did, against the rules: no privilege tells the two apart.
    assert mean(safe, "attack_success") < 0.05 < 0.9 < mean(safe, "utility") and mean(safe, "refused_calls") > 0.5


def test_a_refused_call_changes_nothing_costs_a_turn_and_is_no_reward():
    env = desk({"name": "privileges", "allow": READS, "deny": [{"tool": "get_user"}]})
    task = env.unwrapped.tasks("test")[0]
    write, user = call_text("suspend_line", line_id="N1"), call_text("get_user", user_id="C1")
    both = f"[{call_text('list_plans')}, {write}]"
    turns = played(env, task.id, [write, user, both, write, write, write])[1:]
    assert all(turn[1].startswith("Refused") and turn[2] == 0.0 for turn in turns)
    assert turns[-1][4] and turns[-1][5]["success"] is False  # truncated at the limit of turns
    assert [turn[5]["turn"] for turn in turns] == [1, 2, 3, 4, 5, 6]
    assert turns[-1][5]["measures"]["refused_calls"] == 6.0
    assert not env.unwrapped.progress()


@pytest.mark.parametrize("line", ["N1", "N1" * 300, ["N1"], 1], ids=["text", "long", "list", "number"])
def test_what_is_denied_is_refused_also_where_no_pattern_can_be_compared_with_it(line):
    env = desk(
        {"name": "privileges", "allow": [{"tool": "*"}], "deny": [{"tool": "*", "arguments": {"line_id": "N*"}}]}
    )
    env.reset(seed=0)
    assert env.step(call_text("suspend_line", line_id=line))[0].startswith("Refused")
    assert not env.step(call_text("list_plans"))[0].startswith("Refused")


@pytest.mark.parametrize(
    ("kind", "sign"), [("failure", "did not answer in time"), ("distraction", '"related"'), ("loss", "")]
)
def test_noise_disturbs_what_is_read_and_nothing_else(kind, sign):
    clean, noisy = desk(), desk(NOISE | {"kinds": [kind]})
    task = clean.unwrapped.tasks("test")[0].id
    actions = [turn[0] for turn in played(clean, task)[1:]]
    first = played(clean, task)[1]
    noisy.reset(seed=0, options={"task": task})
    text, reward, *_, info = noisy.step(actions[0])
    assert text != first[1] and sign in text and info["understood"]
    assert info["progress"] == first[5]["progress"] and reward == (0.0 if kind == "failure" else first[2])
    if kind == "loss":
        assert len(json.loads(text)) == len(json.loads(first[1])) - 1


def test_failures_pass_and_an_expert_that_tries_again_succeeds():
    infos = ends(desk({"name": "noise", "rate": 0.3, "kinds": ["failure"]}))
    assert mean(infos, "disturbed") > 0.3 and sum(info["success"] for info in infos) > 50


@pytest.mark.parametrize("wrappers", [[OBEYS], [NOISE], [OBEYS, {"name": "privileges", "allow": STATED}]])
def test_a_restored_episode_goes_on_as_the_original(wrappers):
    env, other = desk(*wrappers), desk(*wrappers)
    tasks = env.unwrapped.tasks("test")
    for number in range(8):
        turns = played(env, tasks[number].id)[1:]
        env.reset(seed=0, options={"task": tasks[number].id})
        env.step(turns[0][0])
        other.reset(seed=9)
        other.restore(env.snapshot())
        for turn in turns[1:]:
            assert other.step(turn[0]) == turn[1:]


@pytest.mark.parametrize(
    ("world", "wrapper", "error", "fix"),
    [
        ("manyturn/Maze-v0", {"name": "noise"}, WrapperMismatch, "no tools"),
        (DESK, {"name": "privileges", "allow": [{"tool": "fly_*"}]}, WrapperMismatch, "give one of"),
        (DESK, {"name": "privileges"}, ValueError, "allow"),
        (DESK, {"name": "injection", "calls": ["go north"]}, ValueError, "not one tool call"),
        ("manyturn/Search-v0", {"name": "injection"}, WrapperMismatch, "harmful_calls"),
    ],
)
def test_a_wrapper_without_effect_is_refused(world, wrapper, error, fix):
    with pytest.raises(error, match=fix):
        EnvHandle(world, None, [wrapper]).tasks("train")
