"""Options that cannot have inner turns: (entries, a pattern of what is said, the change that works)."""

from typing import Any

_PLANS = r"agent\.inner = 'planning' makes inner turns"
_NONE = {"agent.inner": None}
_PAIRED = {"name": "reinforce", "aggregation": "token-sum", "reference": True}

REFUSED_OF_INNER: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"agent.inner": "planning", "rollout.branching": {"initial": 2}}, _PLANS, _NONE),
    ({"agent.inner": "planning", "rollout.guidance": "hints"}, _PLANS, _NONE),
    ({"agent.inner": "planning", "judge": {}}, _PLANS, {"judge": {"verdicts": "episode"}}),
    ({"agent.inner": "planning", "warmup": {"trajectories": "played.jsonl"}}, _PLANS, {"warmup": {}}),
    (
        {"agent.inner": "planning", "credit.advantage": "copg", "objective": _PAIRED, "learner.minibatch": 128},
        _PLANS,
        _NONE,
    ),
    ({"agent.inner": "planning", "credit.advantage": "igpo", "credit.rewards": ["igpo"]}, _PLANS, _NONE),
    ({"agent.inner": "planning", "credit.advantage": "grpo", "credit.modulation": ["agentopsd"]}, _PLANS, _NONE),
    ({"agent.inner": "planning", "credit.advantage": "istar", "implicit": {}}, _PLANS, _NONE),
    (
        {"agent.context": "summary", "rollout.branching": {"initial": 2}},
        r"agent\.context = 'summary' makes inner turns",
        {"agent.context": "whole"},
    ),
]
