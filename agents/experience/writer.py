"""The writer: a policy that is asked for texts, such as lessons, with a journal of its answers."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from manyturn.agents.engine.engine import EngineError, EngineRefused
from manyturn.agents.experience.budget import Budgeted, Purse
from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.episode import Act, LimitReached, Policy
from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.records.episode_log import Journal
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.usage import NOTHING, Spent
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.hosting.handle.env_handle import Answer

INSTRUCTIONS = "You help an agent to learn from its attempts at tasks. Answer in plain text."
_OPEN = 16  # texts that are asked for at the same time
_ATTEMPTS = Patience().attempts  # as for an episode


@runtime_checkable
class Writes(Protocol):
    """A policy that can be asked for texts."""

    def writer(self, longest: int) -> Policy:
        """The same policy as one that answers a prompt with text; ``longest`` is in tokens.

        Raises:
            ValueError: it cannot write.
        """
        ...


def writer_of(policy: Policy, longest: int) -> Policy:
    """The writer that a policy is. Raises ValueError, which names the fix, for one that cannot write."""
    if isinstance(policy, Writes):
        return policy.writer(longest)
    raise ValueError(f"{policy.name} writes no texts, which this method asks for: add --writer, such as openai:MODEL")


class Writer:
    """Asks a policy for texts; answers in the journal are not asked for again.

    Args:
        policy: writes; None where the method asks for no texts.
        journal: of answers.
        seed: sampling noise derives from it.
        purse: limits of the spending.

    Attributes:
        spent: tokens and cost of each round's texts, by the round's number.
        unwritten: rounds' texts that a limit of the writer left out, by the round's number.
    """

    def __init__(self, policy: Policy | None, journal: Journal, seed: int, purse: Purse):
        self._policy = None if policy is None else Budgeted(policy, purse)
        self._journal, self._seed, self._purse = journal, seed, purse
        self._answers = {(e["round"], e["name"], digest(e["prompt"])): str(e["text"]) for e in journal.entries}
        self.spent: dict[int, Spent] = {}
        self.unwritten: dict[int, int] = {}
        for entry in journal.entries:
            self._count(entry["round"], Spent(*entry["spent"]), is_unwritten=entry["unwritten"])
        self._places = asyncio.Semaphore(_OPEN)

    def recall(self, number: int) -> None:
        """Count what the texts of a round took in earlier calls against the budget."""
        self._purse.add(self.spent.get(number, NOTHING))

    async def write(self, number: int, prompts: Sequence[tuple[str, str]]) -> list[str]:
        """The answers to prompts; one is empty where the prompt is longer than the writer's limits.

        Texts that are under way when one fails are waited for: they are paid for, and the journal keeps them.

        Args:
            number: of the round.
            prompts: each with a name that is unique in the round.

        Raises:
            TooManyErrors: the engine failed at every attempt.
            BudgetSpent: there is no budget left.
        """
        texts = await asyncio.gather(*(self._text(number, *pair) for pair in prompts), return_exceptions=True)
        for text in texts:
            if isinstance(text, BaseException):
                raise text
        return [text for text in texts if isinstance(text, str)]

    async def _text(self, number: int, name: str, prompt: str) -> str:
        place = (number, name, digest(prompt))
        if place not in self._answers:
            async with self._places:
                act, unwritten = await self._act(EpisodeKey(self._seed, f"write/{number}", name, 0), prompt)
            text = "" if act is None or not act.format_valid else act.action
            spent = NOTHING if act is None or act.usage is None else NOTHING.plus(act.usage)
            self._count(number, spent, is_unwritten=unwritten)
            entry = {"round": number, "name": name, "prompt": prompt, "text": text}
            self._journal.append({**entry, "spent": spent, "unwritten": unwritten})
            self._answers[place] = text
        return self._answers[place]

    async def _act(self, key: EpisodeKey, prompt: str) -> tuple[Act | None, bool]:
        """The reply, and whether a limit left it out."""
        assert self._policy is not None, "a method that writes nothing asks for nothing"
        seat: Any = None  # a writer stands in no environment
        for attempt in range(1, _ATTEMPTS + 1):
            player = self._policy.player(key, INSTRUCTIONS)
            try:
                return await player.act(Answer(prompt), seat), False
            except LimitReached:
                return None, True
            except EngineError as error:
                if attempt == _ATTEMPTS or isinstance(error, EngineRefused):
                    raise TooManyErrors(
                        f"the writer {self._policy.name} gave no text after {attempt} "
                        f"attempt{'s' * (attempt > 1)}: {error}. The same command continues from here"
                    ) from error
            finally:
                player.leave()
        raise AssertionError("attempts are at least one")

    def _count(self, number: int, spent: Spent, *, is_unwritten: bool) -> None:
        self.spent[number] = self.spent.get(number, NOTHING).plus(spent)
        self.unwritten[number] = self.unwritten.get(number, 0) + is_unwritten
