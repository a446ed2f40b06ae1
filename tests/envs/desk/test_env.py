"""A desk must be solvable by its policy, by nothing less, and give the same episode in every process."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.env import PARTS, Desk
from manyturn.envs.desk.task_shapes import LEVELS
from manyturn.envs.tools.calls import call_text, calls_text
from manyturn.envs.tools.tool_prompt import without_tools
from manyturn.envs.users.agenda import AgendaUser

ID = "manyturn/Desk-v0"
PACK, USER = st.sampled_from(list(PACKS)), st.sampled_from([{"kind": "ticket"}, {"kind": "agenda", "patience": 50}])
CLOSE = call_text("close", answer="done")


def finish(env: Desk) -> dict:
    """The info of the last turn of the expert's play from here."""
    info = {}
    while "success" not in info:
        *_, info = env.step(env.expert())
    return info


def begin(env: Desk, wanted) -> None:
    """Begin a training task that ``wanted`` says yes to."""
    for task in env.tasks("train")[:400]:
        if wanted(task.params):
            env.reset(seed=0, options={"task": task})
            return
    raise AssertionError("no such task")


@pytest.mark.deep
@pytest.mark.parametrize(
    "kwargs",
    [
        {"pack": "retail", "difficulty": "easy", "rewards": "turns"},
        pytest.param(
            {"pack": "telecom", "difficulty": "medium", "user": {"kind": "agenda", "noise": 0.1}},
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda kwargs: kwargs["pack"],
)
def test_the_conformance_check_passes(kwargs: dict) -> None:
    report = check(ID, kwargs, samples=3)
    assert report.passed, str(report)


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("user", ["ticket", "agenda"])
@pytest.mark.parametrize("difficulty", LEVELS)
def test_the_expert_succeeds_and_neither_nothing_nor_chance_does(pack: str, user: str, difficulty: str) -> None:
    env, rng = Desk(pack=pack, user=user, difficulty=difficulty, users=300), generator("chance", pack, difficulty)
    lucky, count = 0, {"tiny": 12, "easy": 12, "medium": 6, "hard": 3}[difficulty]
    for split in env.splits:
        for task in env.tasks(split)[:count]:
            env.reset(seed=1, options={"task": task})
            assert finish(env)["success"], task.id
            env.reset(seed=1, options={"task": task})
            *_, terminated, _, info = env.step(CLOSE)
            assert terminated and not info["success"], f"{task.id}: doing nothing is paid"
            _, info = env.reset(seed=1, options={"task": task})
            while "success" not in info:
                *_, info = env.step(info["admissible"][int(rng.integers(len(info["admissible"])))])
            lucky += info["success"]
    assert lucky <= 0.1 * 3 * count


@settings(max_examples=30, deadline=None)
@given(PACK, USER, st.integers(0, 2**40), st.lists(st.integers(0, 999), max_size=12))
def test_after_any_harmless_turns_the_expert_still_succeeds(
    pack: str, user: dict, seed: int, choices: list[int]
) -> None:
    env = Desk(pack=pack, user=user, difficulty="medium", users=300, max_turns=200)
    _, info = env.reset(seed=seed)
    nonsense = ["", "Hello?", "{", '{"name": "look", "arguments": {}}']
    for choice in choices:
        reads = [text for text in env.admissible() if json.loads(text)["name"].startswith(("get", "find", "list"))]
        some = reads if reads and choice % 3 else nonsense
        *_, info = env.step(env.expert() if choice % 2 else some[choice % len(some)])
        if "success" in info:
            break
    assert info["success"] if "success" in info else finish(env)["success"]


@pytest.mark.parametrize("pack", PACKS)
def test_one_write_too_many_one_too_few_or_a_wrong_one_earns_nothing(pack: str) -> None:
    env = Desk(pack=pack, difficulty="easy", users=300, rewards="turns")
    begin(env, lambda params: not params["requests"][0]["rule"] and not params["asked"])
    [errand] = env._solution.errands
    right = call_text(errand.call.name, **errand.call.arguments)
    other = next(key for key in env._desk_tools.store.tables.records["users"] if key != env.task.params["user"])
    for extra in (user_write(env, other), None):
        env.reset(seed=0, options={"task": env.task})
        *_, info = env.step(right)
        assert info["reward_parts"] == {"write": PARTS["write"]} and info["progress"] == 1.0
        if extra:
            *_, info = env.step(extra)
            assert info["reward_parts"] == {"wrong": PARTS["wrong"]} and info["progress"] == 0.0
        *_, info = env.step(CLOSE)
        assert info["success"] == (extra is None)


def user_write(env: Desk, user: str) -> str:
    """A write to a thing of another customer."""
    about, thing = next(iter(env._pack.things.items()))
    key = env._desk_tools.store["users", user][thing.table][0]
    place = {
        "retail": ("set_order_address", {"address": "1 Oak Street, Nowhere"}),
        "travel": ("set_bags", {"bags": 20}),
    }
    name, arguments = place.get(env._pack.name, ("add_data", {"gb": 50}))
    return call_text(name, **{about: key}, **arguments)


@pytest.mark.parametrize("pack", PACKS)
def test_a_refusal_names_its_rule_and_no_other(pack: str) -> None:
    env = Desk(pack=pack, difficulty="easy", users=300)
    begin(env, lambda params: params["requests"][0]["rule"] and not params["asked"])
    rule = env.task.params["requests"][0]["rule"]
    every = " ".join(rule.name for rule in env._pack.rules)
    for answer, success in (
        (f"Rule {rule} forbids it.", True),
        (rule.lower(), True),
        (f"{rule}0", False),
        (every, False),
    ):
        env.reset(seed=0, options={"task": env.task})
        *_, info = env.step(call_text("close", answer=answer))
        assert info["success"] == success, answer
    env.reset(seed=0, options={"task": env.task})
    call = env._solution.errands[0].call
    env.step(call_text(call.name, **call.arguments))
    *_, info = env.step(call_text("close", answer=rule))
    assert not info["success"], "doing what one refuses"


def test_a_figure_must_be_told_as_it_stands() -> None:
    env = Desk(difficulty="easy", users=300)
    begin(env, lambda params: params["asked"] and params["requests"][0]["rule"])
    rule, figure = env._solution.errands[0].rule, env._solution.figure[1]
    many = " ".join(map(str, range(1000))).replace(" ", "\n")
    for told, success in (
        (many, False),
        (figure, True),
        (f"{figure}.", True),
        (f"1{figure}", False),
        (f"{figure}.5", False),
        ("", False),
    ):
        env.reset(seed=0, options={"task": env.task})
        *_, info = env.step(call_text("close", answer=f"{rule}: {told}"))
        assert info["success"] == success, told


def test_needed_reads_are_paid_once_and_only_where_turns_are_paid() -> None:
    for rewards in ("turns", "outcome"):
        env = Desk(difficulty="easy", users=300, rewards=rewards)
        begin(env, lambda params: params["way"] == "id" and params["requests"][0]["kind"] == "cancel")
        read = env.expert()
        unneeded = call_text("list_products")
        paid = [env.step(action)[4]["reward_parts"] for action in (read, read, unneeded)]
        assert paid == [{"read": PARTS["read"]} if rewards == "turns" else {}, {}, {}]
        assert env.part_names == (tuple(PARTS) if rewards == "turns" else ())


def test_nobody_answers_a_ticket_and_calls_are_checked() -> None:
    env = Desk(users=200)
    env.reset(seed=0)
    for action in ("What is your name?", "", '{"name": "get_order"}', call_text("get_order", order_id=7)):
        text, _, terminated, _, info = env.step(action)
        assert not info["understood"] and not terminated and text


@pytest.mark.parametrize("pack", PACKS)
def test_a_tool_shows_short_records_at_the_lowest_difficulty_alone(pack: str) -> None:
    for difficulty in ("tiny", "easy"):
        env = Desk(pack=pack, difficulty=difficulty, users=200)
        begin(env, lambda params: params["way"] == "id")
        request = env.task.params["requests"][0]
        thing = env._pack.things[env._solution.errands[0].kind.about]
        text, *_ = env.step(call_text(thing.get, **{env._solution.errands[0].kind.about: request["key"]}))
        record = env._desk_tools.store[thing.table, request["key"]]
        assert set(json.loads(text)) & record.keys() == set(
            env._pack.brief[thing.table] if difficulty == "tiny" else record
        )


def test_several_calls_in_a_turn_and_a_close_among_them() -> None:
    env = Desk(difficulty="easy", users=300)
    begin(env, lambda params: params["way"] == "id" and not params["requests"][0]["rule"] and not params["asked"])
    call = env._solution.errands[0].call
    *_, info = env.step(calls_text([(call.name, call.arguments), ("close", {})]))
    assert info["success"]


def test_a_customer_tells_ids_only_when_asked() -> None:
    env = Desk(user="agenda", difficulty="easy", users=300)
    begin(env, lambda params: params["way"] == "id")
    key = env.task.params["requests"][0]["key"]
    assert isinstance(env.user, AgendaUser) and key not in env.observation
    text, *_ = env.step(env.expert())
    assert key in text


def test_an_episode_leaves_the_database_as_it_was() -> None:
    env = Desk(difficulty="medium", users=200)
    before = digest(env._desk_tools.store.tables.records)
    for seed in range(5):
        env.reset(seed=seed)
        finish(env)
    assert digest(env._desk_tools.store.tables.records) == before


def test_instructions_hold_the_policy_and_the_tools() -> None:
    for pack in PACKS.values():
        env = Desk(pack=pack.name, users=200)
        rules, tools = without_tools(env.instructions)
        assert list(tools) == json.loads(json.dumps(env.tools))
        assert all(f"{rule.name}. {rule.text}" in rules for rule in pack.rules)


@pytest.mark.parametrize(
    ("kwargs", "told"),
    [
        ({"pack": "retial"}, "unknown pack 'retial'; did you mean 'retail'"),
        ({"difficulty": "extreme"}, "no difficulty 'extreme': Desk has tiny, easy, medium, hard"),
        ({"rewards": "all"}, "unknown rewards"),
        ({"users": 10}, "from 200 to 2000"),
        ({"user": "nobody"}, "unknown user 'nobody'"),
    ],
)
def test_a_wrong_argument_is_told(kwargs: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Desk(**kwargs)
