"""ToolRL's reward of one reply against the calls that a reference makes.

    R = R_format + R_correct
    R_format  = 1 if the reply has the parts of the reference in order, once each, else 0
    R_correct = 6 · S / S_max - 3, or -3 if the calls cannot be read
    S         = J(names) + Σ_g max_p [J(keys of g, keys of p) + Σ_k 1[g_k = p_k]]
    S_max     = 1 + Σ_g (1 + keys of g)

J is |A ∩ B| / |A ∪ B|; g runs over the reference's calls, p over the reply's calls of that name not matched before.

Source: Qian et al. 2025, arXiv 2504.13958, section 3.3. Differences: as in the authors' code
(verl/utils/reward_score/rlla.py), calls are matched greedily in the reference's order, where the paper takes the best
assignment, and J counts repeated names. Calls stand one a line within one ``<tool_call>`` pair, and their arguments
are called ``parameters``.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Call = tuple[str, Mapping[str, Any]]
WORST, BEST = -3.0, 3.0
_MARKS = ("<tool_call>", "</tool_call>", "<response>", "</response>")
_THOUGHTS, _CALLS, _RESPONSE = r"<think>.*?</think>", r"\n<tool_call>\n.*?\n</tool_call>", r"\n<response>.*?</response>"


class ToolRL(NamedTuple):
    """The two parts of the reward: ``format`` is 0 or 1, ``correctness`` lies in [-3, 3]."""

    format: float
    correctness: float

    @property
    def total(self) -> float:
        return self.format + self.correctness


class _Call(NamedTuple):
    name: str
    parameters: Mapping[str, Any]


def toolrl_reward(reply: str, reference: str) -> ToolRL:
    """The reward of a reply, whatever it is. Raises ValueError if the reference's calls cannot be read.

    >>> toolrl_reward("<think>a</think>\\n<response>Hi!</response>", "<think>b</think>\\n<response>Hello!</response>")
    ToolRL(format=1.0, correctness=0.0)
    """
    if "<tool_call>" not in reference:
        return ToolRL(_format(reply, reference), 0.0)
    wanted = _calls(reference)
    try:
        correct = correctness(_calls(reply), wanted)
    except (ValueError, RecursionError):
        correct = WORST
    return ToolRL(_format(reply, reference), correct)


def correctness(made: Iterable[Call], wanted: Iterable[Call]) -> float:
    """How near the calls that were made come to those that were wanted, in [-3, 3]; each is (name, arguments).

    >>> correctness([("look", {"at": 1})], [("look", {"at": 1})])
    3.0
    """
    made, wanted = list(made), list(wanted)
    if made == wanted:
        return BEST
    score, most, left = _overlap([name for name, _ in wanted], [name for name, _ in made]), 1.0, dict(enumerate(made))
    for name, arguments in wanted:
        most += 1 + len(arguments)
        near = {i: _nearness(arguments, given) for i, (other, given) in left.items() if other == name}
        best = max(near, key=near.__getitem__, default=None)  # the first of equals
        if best is not None and near[best] > 0:
            score += near[best]
            del left[best]
    return (BEST - WORST) * score / most + WORST


def _format(reply: str, reference: str) -> float:
    wanted = [mark in reference for mark in ("<tool_call>", "<response>")]
    shape = _THOUGHTS + wanted[0] * _CALLS + wanted[1] * _RESPONSE
    once = all(reply.count(mark) == 1 for mark in _MARKS if wanted["response" in mark])
    return float(once and re.search(f"^{shape}$", reply, re.DOTALL) is not None)


def _calls(text: str) -> list[_Call]:
    """The calls of a reply. Raises ValueError or RecursionError if they cannot be read."""
    _, opened, rest = text.partition("<tool_call>")
    block, closed, _ = rest.partition("</tool_call>")
    if not (opened and closed):
        raise ValueError("a reply with calls has them between <tool_call> and </tool_call>")
    return [_call(json.loads(line)) for line in block.strip().split("\n")]


def _call(found: Any) -> _Call:
    match found:
        case {"name": str(name), "parameters": dict(parameters)}:
            return _Call(name, parameters)
    raise ValueError('a call is {"name": TOOL, "parameters": {...}}')


def _overlap(one: list[str], two: list[str]) -> float:
    if one == two:
        return 1.0
    both = (Counter(one) & Counter(two)).total()
    return both / (len(one) + len(two) - both)


def _nearness(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    right = sum(1.0 for key, value in wanted.items() if key in given and given[key] == value)
    return _overlap(list(wanted), list(given)) + right
