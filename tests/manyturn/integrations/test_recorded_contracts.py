"""Trainers that no package index has, by the interfaces that their repositories had: credit at the wrong token."""

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import manyturn.credit as mc
from manyturn.integrations.prime_rl import algorithm
from manyturn.integrations.rllm import CreditHook

GIGPO = mc.CreditConfig(advantage={"name": "gigpo", "gamma": 0.9})
ANCHORS = [["hall", "kitchen", "cellar"], ["hall", "garden"], ["hall", "kitchen"]]
REWARDS = [[0.0, 0.0, 1.0], [0.0, 0.0], [0.0, 0.25]]
TOKENS = [[2, 1, 3], [1, 2], [2, 2]]


def wanted(**changes: Any) -> list[list[float]]:
    """Credit of the three episodes' tokens, by the library."""
    batch = mc.TurnBatch.from_episodes(REWARDS, ["a"] * 3, anchors=ANCHORS, tokens=TOKENS, **changes)
    return [np.concatenate(own).tolist() for own in mc.by_reply(mc.credit(batch, GIGPO).advantage_T, batch)]


@dataclass
class Node:
    mask: list[bool]
    advantages: list[float] | None = None


@dataclass
class Agent:
    name: str = "player"


@dataclass
class Trace:
    nodes: list[Node]
    info: dict[str, Any]
    reward: float = 0.0
    agent: Agent = field(default_factory=Agent)
    failed: bool = False


@pytest.fixture
def prime_rl(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three names of prime-rl that an algorithm has to do with."""

    class Algorithm:
        def __init__(self, config: Any, policy_pool: Any):
            self.policy_pool = policy_pool

    def assign_advantages(trace: Trace, values: list[float]) -> None:
        left = iter(values)
        for node in trace.nodes:
            if any(node.mask):
                node.advantages = [next(left) for said in node.mask if said]
        assert next(left, None) is None

    algo, base = ModuleType("prime_rl.orchestrator.algo"), ModuleType("prime_rl.orchestrator.algo.base")
    algo.Algorithm, algo.assign_advantages = Algorithm, assign_advantages
    base.iter_trainable_traces = lambda episodes: [
        (one, trace) for one in episodes for trace in one if not trace.failed
    ]
    for module in (algo, base):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("prime_rl", "prime_rl.orchestrator"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


def trace(episode: int, **changes: Any) -> Trace:
    """A trace with a prompt before each reply, whose nodes begin with a token of the template."""
    nodes = [node for count in TOKENS[episode] for node in (Node([False] * 3), Node([False] + [True] * count))]
    info = {"credit": {"rewards": REWARDS[episode], "anchors": ANCHORS[episode]}}
    return Trace(**{"nodes": nodes, "info": info, **changes})


def said(one: Trace) -> list[float]:
    return [value for node in one.nodes for value in node.advantages or []]


def test_every_sampled_token_of_a_prime_rl_trace_has_the_credit_of_the_library(prime_rl):
    traces = [trace(episode) for episode in range(3)]
    failed = Trace([Node([True])], {}, failed=True)
    scorer = algorithm(GIGPO)(None, None)
    asyncio.run(scorer.score_group([[one] for one in (*traces, failed)]))
    assert [said(one) for one in traces] == wanted() and failed.nodes[0].advantages is None
    assert all(node.advantages is None for one in traces for node in one.nodes if not any(node.mask))
    asyncio.run(scorer.score_group([]))


def test_agents_of_a_prime_rl_episode_are_not_compared_with_each_other(prime_rl):
    traces = [trace(episode, agent=Agent(name)) for episode, name in enumerate(("guide", "player", "guide"))]
    asyncio.run(algorithm(GIGPO)(None, None).score_group([traces]))
    assert not any(said(traces[1])) and said(traces[0])[0] > 0 > said(traces[2])[-1]


def test_a_prime_rl_trace_without_credit_earns_its_reward_at_its_last_turn(prime_rl):
    plain = [trace(episode, info={}, reward=float(episode == 0)) for episode in range(3)]
    config = mc.CreditConfig(advantage={"name": "grpo", "std": False})
    asyncio.run(algorithm(config)(None, None).score_group([plain]))
    assert [{round(value, 6) for value in said(one)} for one in plain] == [{0.666667}, {-0.333333}, {-0.333333}]
    with pytest.raises(ValueError, match="has 'reward': there are anchor_texts, anchors"):
        wrong = trace(0, info={"credit": {"reward": [1.0]}})
        asyncio.run(algorithm(config)(None, None).score_group([[wrong]]))


def test_a_missing_or_other_prime_rl_is_refused(monkeypatch):
    for name in ("prime_rl", "prime_rl.orchestrator"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name in ("prime_rl.orchestrator.algo", "prime_rl.orchestrator.algo.base"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(ImportError, match=r"this prime-rl has no place for credit of tokens: .*Algorithm"):
        algorithm(GIGPO)


@dataclass
class Step:
    response_ids: list[int]
    reward: float
    observation: Any
    metadata: dict[str, Any] | None = None
    advantage: Any = None


@dataclass
class Trajectory:
    steps: list[Step]
    reward: float | None


@dataclass
class Group:
    group_id: str
    trajectories: list[Trajectory]


def grouped(*_: Any, **__: Any) -> list[Group]:
    trajectories = [
        Trajectory([Step([7] * n, r, a) for n, r, a in zip(*own, strict=True)], sum(own[1]))
        for own in zip(TOKENS, REWARDS, ANCHORS, strict=True)
    ]
    return [Group("a", trajectories)]


def test_every_token_of_an_rllm_step_has_the_credit_of_the_library():
    [group] = CreditHook(GIGPO, grouped)(["episodes"], None, None)
    assert [[x for step in one.steps for x in step.advantage] for one in group.trajectories] == wanted()
    assert [[len(step.advantage) for step in one.steps] for one in group.trajectories] == TOKENS


def test_a_reward_of_an_rllm_trajectory_is_not_lost_nor_counted_twice():
    def outcome_only(*_: Any) -> list[Group]:
        [group] = grouped()
        for one in group.trajectories:
            for step in one.steps:
                step.reward = 0.0
        return [group]

    with pytest.raises(ValueError, match=r"earned nothing, but the trajectory 1\.0: give steps their rewards, or set"):
        CreditHook(GIGPO, outcome_only)()
    [group] = CreditHook(GIGPO, outcome_only, rewards="trajectory")()
    [twice] = CreditHook(GIGPO, grouped, rewards="trajectory")()
    for ours in (group, twice):
        assert [[x for step in one.steps for x in step.advantage] for one in ours.trajectories] == wanted()


class Batch(dict[str, Any]):
    """SkyRL's batch: tensors, and metadata beside them."""

    metadata: dict[str, Any]


@pytest.fixture
def skyrl(monkeypatch: pytest.MonkeyPatch) -> Any:
    """SkyRL's registry, and a trainer with the two methods that have to do with advantages."""
    torch = pytest.importorskip("torch")

    class Registry:
        known: ClassVar[dict[str, Any]] = {}
        list_available = staticmethod(lambda: list(Registry.known))
        get = staticmethod(lambda name: Registry.known[name])
        unregister = staticmethod(lambda name: Registry.known.pop(name))

        @staticmethod
        def register(name: str, function: Any) -> None:
            assert name not in Registry.known
            Registry.known[name] = function

    class Trainer:
        def __init__(self, cfg: Any):
            self.cfg = cfg

        def convert_to_training_input(self, generator_output: dict[str, Any], uids: list[str]) -> Batch:
            width, data = max(map(len, generator_output["loss_masks"])), Batch()
            rows = [[0.0] * (width - len(row)) + row for row in generator_output["loss_masks"]]
            data["loss_mask"] = torch.tensor([*rows, [0.0] * width])  # and a row of padding
            data["response_mask"], data["rewards"] = (
                torch.ones(data["loss_mask"].shape),
                torch.zeros(len(rows) + 1, width),
            )
            data.metadata = {"uids": [*uids, "pad0"]}
            return data

        def compute_advantages_and_returns(self, data: Batch) -> Batch:
            data["advantages"], data["returns"] = Registry.get(self.cfg.trainer.algorithm.advantage_estimator)(
                token_level_rewards=data["rewards"],
                response_mask=data["response_mask"],
                index=data.metadata["uids"],
                values=None,
                gamma=1.0,
                lambd=1.0,
            )
            return data

    module = ModuleType("skyrl.backends.skyrl_train.utils.ppo_utils")
    module.AdvantageEstimatorRegistry = Registry  # pyright: ignore[reportAttributeAccessIssue]
    parts = module.__name__.split(".")
    for end in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Trainer


def of_skyrl(**changes: Any) -> Any:
    """SkyRL's configuration, of which a few options count."""
    algorithm = SimpleNamespace(advantage_estimator="manyturn")
    cfg = SimpleNamespace(generator=SimpleNamespace(), trainer=SimpleNamespace(algorithm=algorithm))
    for path, value in changes.items():
        place: Any = cfg
        *steps, last = path.split("__")
        for step in steps:
            place = getattr(place, step)
        setattr(place, last, value)
    return cfg


def played_by_skyrl(credits: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    masks = [[value for count in own for value in [0.0] * 2 + [1.0] * count][2:] for own in TOKENS]
    return {"loss_masks": masks, "env_metrics": [{"turns": 3} | ({} if c is None else {"credit": c}) for c in credits]}


def test_every_token_of_a_skyrl_batch_has_the_credit_of_the_library(skyrl):
    from manyturn.integrations.skyrl_trainer import credit_trainer, register

    register(mc.CreditConfig(advantage="grpo"))
    estimator = register(GIGPO)  # a second time, as a process of Ray does
    trainer = credit_trainer(skyrl)(of_skyrl())
    told = [{"rewards": {"outcome": r}, "anchors": a} for r, a in zip(REWARDS, ANCHORS, strict=True)]
    told[2]["rewards"] |= {"cost": [0.0, 0.0]}  # a part that only one episode has
    data = trainer.convert_to_training_input(played_by_skyrl(told), ["a"] * 3)
    data = trainer.compute_advantages_and_returns(data)
    for row, own in enumerate(wanted()):
        np.testing.assert_allclose(data["advantages"][row][data["loss_mask"][row] == 1].numpy(), own, rtol=1e-6)
    assert not data["advantages"][data["loss_mask"] == 0].any() and data["returns"].equal(data["advantages"])
    told[0] |= {"rewards": [0.0, 0.0, None]}
    told[1]["rewards"], told[2]["rewards"] = REWARDS[1:]
    data = trainer.convert_to_training_input(played_by_skyrl(told), ["a"] * 3)
    learnt = trainer.compute_advantages_and_returns(data)["loss_mask"].any(1)
    assert learnt.tolist() == [False, True, True, False]
    with pytest.raises(ValueError, match="tells manyturn of no turns: train with credit_trainer"):
        estimator(data["rewards"], data["response_mask"], ["a"])


def test_what_skyrl_cannot_carry_is_refused_by_its_name(skyrl):
    from manyturn.integrations.skyrl_trainer import credit_trainer, register

    with pytest.raises(ValueError, match="gae learns a critic, and SkyRL gives manyturn none"):
        register(mc.CreditConfig(advantage="gae"))
    made = credit_trainer(skyrl)
    for change, said in (
        ({"trainer__algorithm__advantage_estimator": "grpo"}, "'grpo' gets no turns: set it to manyturn"),
        ({"generator__step_wise_trajectories": True}, "step_wise_trajectories = True gives a trajectory one advantage"),
        ({"generator__apply_overlong_filtering": True}, "truncated='left_out'"),
        ({"trainer__algorithm__use_kl_in_reward": True}, "take use_kl_loss instead"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            made(of_skyrl(**change))
    with pytest.raises(ValueError, match="the environment says nothing of its turns: export it with manyturn"):
        made(of_skyrl()).convert_to_training_input(played_by_skyrl([None] * 3), ["a"] * 3)
    with pytest.raises(ImportError, match="no place for credit of tokens: object does not name the groups"):
        credit_trainer(object)


def test_what_a_host_has_no_place_for_is_refused_by_its_name(prime_rl):
    shares = mc.CreditConfig(advantage="gigpo", rewards=("spa",))
    with pytest.raises(ValueError, match="spa needs 'contribution', for which steps of rLLM's have no place"):
        CreditHook(shares, grouped)
    with pytest.raises(ValueError, match="gae learns a critic, and prime-rl has none"):
        algorithm(mc.CreditConfig(advantage="gae"))
    with pytest.raises(
        mc.ConfigError, match="verl, SkyRL, prime-rl, rLLM and TRL's asynchronous trainer have no place"
    ):
        mc.CreditConfig(advantage="gigpo", modulation=("epo",))


def test_spas_shares_and_g_ras_parts_travel_in_a_prime_rl_trace(prime_rl):
    config = mc.CreditConfig(
        rewards=({"name": "gated", "gates": ({"threshold": 1},)}, "spa"), advantage=GIGPO.advantage
    )
    parts = [{"outcome": own} for own in REWARDS]
    parts[0] |= {"step": [0.5, 0.0, 0.25]}
    shares = [[0.25 * turn for turn in range(len(own))] for own in REWARDS]
    told = [
        {"rewards": part, "anchors": anchors, "columns": {"contribution": share}}
        for part, anchors, share in zip(parts, ANCHORS, shares, strict=True)
    ]
    traces = [trace(episode, info={"credit": told[episode]}) for episode in range(3)]
    asyncio.run(algorithm(config)(None, None).score_group([traces]))
    full = [part | {"step": part.get("step", [0.0] * len(own))} for part, own in zip(parts, REWARDS, strict=True)]
    batch = mc.TurnBatch.from_episodes(
        {name: [part[name] for part in full] for name in ("outcome", "step")},
        ["a"] * 3,
        anchors=ANCHORS,
        tokens=TOKENS,
        columns={"contribution": shares},
    )
    earned = mc.by_reply(mc.credit(batch, config).advantage_T, batch)
    assert [said(one) for one in traces] == [np.concatenate(own).tolist() for own in earned]


def test_every_token_of_a_verl_batch_has_the_credit_of_the_library():
    torch = pytest.importorskip("torch")
    from manyturn.integrations.verl import CreditEstimator, take_place

    rows = [[value for count in own for value in [1] * count + [0] * 2] for own in TOKENS]
    width = max(map(len, rows))
    mask = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    told = np.empty(3, dtype=object)
    told[:] = [{"rewards": rewards, "anchors": anchors} for rewards, anchors in zip(REWARDS, ANCHORS, strict=True)]
    given = {"response_mask": mask, "token_level_rewards": torch.zeros(mask.shape), "config": {}, "batch": {}}
    given["index"] = np.array(["a"] * 3, dtype=object)
    advantages, returns = CreditEstimator(GIGPO)(**given, non_tensor_batch={"credit": told, "uid": given["index"]})
    assert advantages.shape == mask.shape and returns is advantages and not advantages[mask == 0].any()
    for row, own in enumerate(wanted()):
        np.testing.assert_allclose(advantages[row][mask[row] == 1].numpy(), own, rtol=1e-6)
    for lacking in ({}, {"non_tensor_batch": {"credit": np.array([None] * 3)}}):
        with pytest.raises(ValueError, match="no column 'credit' for each row: set"):
            CreditEstimator(GIGPO)(**given, **lacking)
    unknown = told.copy()
    unknown[0] = told[0] | {"rewards": [0.0, 0.0, None]}
    advantages, _ = CreditEstimator(GIGPO)(**given, non_tensor_batch={"credit": unknown})
    assert not advantages[0].any()
    if find_spec("verl") is None:
        with pytest.raises(ImportError, match="this verl has no place for credit of tokens"):
            take_place(GIGPO)
