"""Check by Gymnasium's own checker, of what an agent meets: the environment, or the user's wrapper around it."""

import math
import re
import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from manyturn.envs.conformance.probe_episodes import NONSENSE, Subject, text_env_of
from manyturn.envs.conformance.verdicts import Fault, Implied, Result
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.hosting.handle.deadline import beat

_NO_FAULTS = (
    "is different from the unwrapped version",  # every wrapper gets it
    "The reward is a NaN value",  # 'rewards' looks at that
)
_WARNING = re.compile(r"(?s)WARN: (.*?)(?:\x1b\[0m)?$")  # as Gymnasium writes its own, in colour
_TOO_SHORT = "truncates after 1 step"


def gymnasium_checker(subject: Subject) -> Result:
    """Gymnasium's own checker, whose warnings count; but nothing is rendered, since an agent reads text."""
    if "spaces" in subject.failed:
        raise Implied("spaces")
    action = NONSENSE
    if "odd actions" in subject.failed or not subject.handle.env.action_space.contains(action):
        action = subject.first_action[1]
    env = _outermost(subject, action)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # of the environment's own too, which are none of the checker's
        try:
            check_env(env, skip_render_check=True, skip_close_check=True)  # 'close' has a check of its own
        except AssertionError as error:
            if _TOO_SHORT in str(error) and "ends" in subject.failed:
                raise Implied("ends") from None
            raise Fault(f"gymnasium.utils.env_checker.check_env says: {error}") from None
    subject.unclosed += [str(one.message) for one in caught if issubclass(one.category, ResourceWarning)]
    texts = (match[1] for one in caught if (match := _WARNING.search(str(one.message))))
    if messages := [text for text in texts if not any(fine in text for fine in _NO_FAULTS)]:
        raise Fault(f"gymnasium.utils.env_checker.check_env warns: {messages[0]}")
    return f"check_env without a warning, playing {action!r:.40}", {}


def _outermost(subject: Subject, action: str) -> gymnasium.Env:
    """A new instance without the layers of this project and of Gymnasium around it, prepared for the checker."""
    handle = subject.fresh()
    env = handle.env
    while isinstance(env, gymnasium.Wrapper) and type(env).__module__.startswith(("gymnasium.", "manyturn.")):
        env = env.env
    if env.unwrapped.spec is None:
        env.unwrapped.spec = EnvSpec("Checked-v0", entry_point=partial(make, subject.name), kwargs=dict(subject.kwargs))
    if env.spec is not None and (
        subject.varies or subject.is_changing or "anchors" in subject.failed or _has_nan(subject)
    ):
        env.spec.nondeterministic = True  # what differs is another check's
    if (text_env := text_env_of(handle)) is not None:
        text_env.max_turns = max(2, text_env.max_turns)  # it takes episodes of one turn for a fault
    env.reset = _beating(env.reset)
    env.step = _beating(env.step, action)
    return env


def _has_nan(subject: Subject) -> bool:
    return any(math.isnan(step.reward) for played in subject.whim_episodes for step in played.steps)


def _beating(ask: Callable[..., Any], action: str | None = None) -> Callable[..., Any]:
    """The same method, for the checker, which knows no deadline and whose actions would be random letters."""

    @wraps(ask)
    def beating(*args: Any, **kwargs: Any) -> Any:
        beat()
        return ask(*args, **kwargs) if action is None else ask(action)

    return beating
