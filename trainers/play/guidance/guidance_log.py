"""A journal of texts, so that what was made before a run was killed is read again and not made again.

A line has the episode that reads the text, and a hash of what it was made from: a text of another attempt than the one
that is there now is of no use.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.agents.play.episode import Episode
from manyturn.agents.records.episode_log import Journal, JournalError
from manyturn.agents.text.chat_template import well_formed
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.random_keys import digest
from manyturn.trainers.play.guidance.guidance import GUIDANCE, GuidanceConfig, Guide, Workshop


async def texts_of(
    workshop: Workshop,
    guides: Mapping[EpisodeKey, Guide],
    config: GuidanceConfig,
    path: Path,
    settings: Mapping[str, Any],
) -> dict[EpisodeKey, str]:
    """The text of each guide for which there is one, from the journal if it is there.

    Args:
        guides: key of the episode that is to read it -> what it is about.
        path: the journal, which is begun if it is missing or of other settings.
        settings: plain values, such as the policy's version.

    Raises:
        TooManyErrors: a critic that is a model does not answer.
    """
    try:
        return await _texts(workshop, guides, config, Journal(path, settings))
    except JournalError:
        path.unlink()
        return await _texts(workshop, guides, config, Journal(path, settings))


async def _texts(
    workshop: Workshop, guides: Mapping[EpisodeKey, Guide], config: GuidanceConfig, journal: Journal
) -> dict[EpisodeKey, str]:
    orders = {key: _order(guide, config) for key, guide in guides.items()}
    with journal:
        made = {EpisodeKey(*entry["key"]): entry["text"] for entry in journal.entries if _is_of(entry, orders)}
        missing = [key for key in guides if key not in made]
        size = config.together or max(1, len(missing))
        for keys in (missing[first : first + size] for first in range(0, len(missing), size)):
            texts = await GUIDANCE.apply(config, workshop, [guides[key] for key in keys])
            for key, text in zip(keys, texts, strict=True):
                made[key] = None if text is None else masked(well_formed(text))
                journal.append({"key": list(key), "of": orders[key], "text": made[key]})
    return {key: made[key] for key in guides if made[key] is not None}


def _is_of(entry: Mapping[str, Any], orders: Mapping[EpisodeKey, str]) -> bool:
    return orders.get(EpisodeKey(*entry["key"])) == entry["of"]


def _order(guide: Guide, config: GuidanceConfig) -> str:
    """A hash of what a text is made from."""
    return digest(config.model_dump_json(), guide.level, list(guide.source.key), _words_of(guide.source))


def _words_of(episode: Episode) -> list[list[str]]:
    return [[turn.observation, turn.reply, turn.action] for turn in episode.turns]
