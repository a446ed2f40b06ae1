"""tau-bench as an environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks.tau.service_env import TRANSFER, ServiceEnv
from manyturn.envs.benchmarks.tau.v1.domains import COUNTS, load
from manyturn.envs.tools.toolset import Answered


class TauBench(ServiceEnv):
    """tau-bench (Yao, Shinn, Razavi and Narasimhan 2024), played natively from its official files.

    Task:
        An official task: a customer with an instruction, and a reference solution.
    Observation:
        What the customer says, or what a tool returns. The policy and the tools are in the instructions.
    Actions:
        A JSON tool call, or text for the customer.
    Reward:
        The paper's, 0 or 1: the database is as after the reference solution, and every required text was said.
        ``info["parts"]`` names what was missing.
    End:
        The customer leaves, or the agent transfers to a person. The official limit is 30 actions.
    Splits:
        Retail has train, dev and test; airline has test.
    Expert:
        Makes the reference solution's calls, then says what must be said, to a patient customer by rules.
    Floors:
        Doing nothing succeeds in 7 of 115 retail test tasks (6 %), 1 of 20 dev and 5 of 500 train tasks, and in 19 of
        50 airline tasks (38 %). Report this floor next to every score.

    Args:
        split: of the domain.
        data: a checkout of sierra-research/tau-bench at 59a200c.
        domain: ``retail`` or ``airline``.
        user: who plays the customer, see ``UserEnv``; default: by rules (``rule_customer.py``), with whom scores are
            not those of the paper, whose customer is a language model.
        max_turns: default 30.
        pinned: refuse files that are not those of the release.
    """

    max_turns = 30

    def __init__(
        self,
        split: str = "test",
        data: str | Path | None = None,
        domain: str = "retail",
        user: str | Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        pinned: bool = True,
    ):
        if domain not in COUNTS:
            raise ValueError(f"no domain {domain!r}: choose {', '.join(COUNTS)}")
        super().__init__(load(data, domain, pinned), split, user, max_turns)

    def leaves(self, answered: Answered) -> bool:
        return any(call.name == TRANSFER for call in answered.calls)
