"""Several environments in one run: their seats by name, and what keeps one policy from learning in all of them.

One policy plays episodes of all environments, and each step learns from them together. What belongs to an environment
stays its own: instructions, limits of turns, wrappers, workers, panel, figures. What is the run's is shared: model,
vocabulary, reply format, context, credit. So a reply format that one of them cannot read is refused, and demonstrations
that only some of them can give.
"""

from collections.abc import Mapping

from manyturn.agents.model.model_config import has_tools
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.local.mixed_seats import MixedSeats
from manyturn.envs.hosting.local.seats import Seats
from manyturn.trainers.recipe.config import RunConfig


def members_of(seats: Seats) -> Mapping[str, Seats]:
    """Name of each environment -> its seats; of one environment, its name in messages."""
    return seats.members if isinstance(seats, MixedSeats) else {seats.facts.name: seats}


def check_mixture(config: RunConfig, seats: Seats) -> None:
    """Raise ConfigError where a part that all environments share does not fit one of them.

    Args:
        config: fitted to the environments.
    """
    if not config.envs:
        return
    members = members_of(seats)
    plain = [name for name, own in members.items() if not has_tools(own.facts)]
    if config.agent.format.name == "tool_call" and plain and len(plain) < len(members):
        raise ConfigError(
            f"agent.format = 'tool_call' writes calls of tools, and {', '.join(plain)} of envs has none: set "
            "agent.format to tagged, or leave it out of envs"
        )
    mute = [name for name, own in members.items() if not own.facts.has_expert]
    if config.warmup.imitates and mute and len(mute) < len(members):
        raise ConfigError(
            f"the warm-up imitates experts, and {', '.join(mute)} of envs has none: give it an expert(), leave it out "
            "of envs, or set warmup.episodes = 0"
        )
