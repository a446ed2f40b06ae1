"""Rewards of a software task: one ladder of outcomes, and rewards of turns that a gate can hold back.

Outcomes, of which an episode has one (Sun et al. 2025, arXiv 2508.10548, whose values are not known)::

    not submitted, or forged   0.0
    empty patch                0.1    nothing that is graded was changed
    tests fail                 0.3
    tests pass                 1.0

So the outcome tells the paper's two rates: work is completed above 0, and the program modified from 0.3 on.

Rewards of turns, each of which an episode earns once at most, and none of which needs the agent's word::

    parsed        0.02    the first call that could be read
    ran           0.02    the first command that ended with status 0
    reproduced    0.03    the first run of the tests in which a FAIL_TO_PASS test failed
    edited        0.03    the first change that is graded
    tests         0.10    the largest share of FAIL_TO_PASS tests seen to pass so far, as it grows

An episode with a forged result earns nothing: its last turn takes back what others paid.

All of them come to 0.2, less than what lies between failing and passing tests. ``tests`` is what the grader itself says
of the agent's changes. For G-RA set the gate between the empty patch and the patch that fails::

    [[credit.rewards]]
    name = "gated"
    gates = [{ part = "outcome", threshold = 0.2 }]
"""

from collections.abc import Mapping

NOT_SUBMITTED, EMPTY, FAILING, RESOLVED = 0.0, 0.1, 0.3, 1.0
GATE = 0.2
STEPS: Mapping[str, float] = {"parsed": 0.02, "ran": 0.02, "reproduced": 0.03, "edited": 0.03, "tests": 0.1}


class Steps:
    """Turn rewards that an episode has earned so far.

    Attributes:
        shares: name of a reward -> the share of it that has been paid, from 0 to 1.
    """

    def __init__(self, shares: Mapping[str, float] | None = None):
        self.shares = dict(shares or {})

    def pay(self, reached: Mapping[str, float]) -> dict[str, float]:
        """The rewards of a turn after which each name has been reached to a share; what was paid before is not again.

        >>> steps = Steps()
        >>> steps.pay({"ran": 1}), steps.pay({"ran": 1, "tests": 0.5}), steps.pay({"tests": 0.25})
        ({'ran': 0.02}, {'tests': 0.05}, {})
        """
        paid: dict[str, float] = {}
        for name, share in reached.items():
            gain = share - self.shares.get(name, 0.0)
            if gain > 0:
                self.shares[name] = share
                paid[name] = STEPS[name] * gain
        return paid

    def take_back(self) -> dict[str, float]:
        """The inverse of all that has been paid, for an episode that earns nothing."""
        return {name: -STEPS[name] * self.shares.pop(name) for name in list(self.shares)}
