"""The most tokens that a run lets a policy say: in a reply, and in an episode."""

from typing import Any, Literal

from manyturn.envs.contract.tasks.env_facts import EnvFacts

Extent = Literal["reply", "episode"]


def longest(run: Any, env: EnvFacts | None) -> dict[Extent, int]:
    """A bound for each; observations, which share the context, can leave less.

    Args:
        run: a ``RunConfig``.
        env: its environment; None while it is not known, which can only make the bounds larger.
    """
    # A reply is counted with the inner turns before it.
    reply, turns = run.sampling.max_tokens + run.agent.inner_tokens, run.rollout.most_turns(env)
    room = run.agent.room
    episode = turns * reply
    return {"reply": reply, "episode": episode if room is None else min(episode, room)}
