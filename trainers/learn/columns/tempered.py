"""The column "tempered" (K): log of the turn's temperature over the run's; 0 where it was drawn at that.

What is remembered is the entropy of the tokens that were drawn at the run's temperature, by which the next step's
temperature is chosen.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied

PLACE = "column tempered"  # what the supplier remembers is kept under this name


class TemperedConfig(ColumnConfig):
    name: Literal["tempered"] = "tempered"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if run.rollout.tempering is not None:
            return None
        return (
            "says which members of a group are drawn at another temperature, and without rollout.tempering none is: "
            "set it, such as rollout.tempering.target = 0.5"
        )


@COLUMNS.register(TemperedConfig, remembers=True)
def tempered(
    step: PlayedStep, config: TemperedConfig, memory: Mapping[str, Any] | None
) -> tuple[Supplied, dict[str, Any]]:
    """Of each turn; and the mean entropy of what the other episodes drew."""
    own = step.agent.sampling.temperature
    drawn_E = [step.temperatures.get(episode.key, own) for episode in step.episodes]
    lengths_E = [len(episode.turns) for episode in step.episodes]
    plain = [episode for episode in step.episodes if episode.key not in step.temperatures]
    entropy = drawn_entropy(plain)
    hot = [temperature for temperature in step.temperatures.values()]
    figures = {"drawn_entropy": entropy, "tempered_temperature": hot[0] if hot else float("nan")}
    column_K = np.repeat(np.log(np.array(drawn_E) / own), lengths_E)
    return Supplied(columns={"tempered": column_K}, figures=figures), {"entropy": entropy}


def drawn_entropy(episodes: list[Episode]) -> float:
    """Mean entropy, in nats, of the distributions that the tokens of these episodes were drawn from."""
    ledgers = [episode.ledger for episode in episodes if episode.ledger is not None]
    rows = [ledger.reply_entropies(turn) for ledger in ledgers for turn in range(len(ledger.spans))]
    return float(np.mean(np.concatenate(rows))) if rows else float("nan")
