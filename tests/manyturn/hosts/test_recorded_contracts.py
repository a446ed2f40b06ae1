"""Trainers that no package index has, by the interfaces that their repositories had: credit at the wrong token."""

import asyncio
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import manyturn.credit as mc
from manyturn.hosts.prime_rl import algorithm
from manyturn.hosts.rllm import CreditHook

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


def test_every_token_of_a_verl_batch_has_the_credit_of_the_library():
    torch = pytest.importorskip("torch")
    from manyturn.hosts.verl import CreditEstimator, take_place

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
