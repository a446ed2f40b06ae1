"""Play of groups and continuations by a language model: many at a time, so that its engine computes batches.

A prompt depends on everything before it. A continuation therefore begins with the replies of its episode, token by
token as they were drawn, which are taken down without asking the engine, and goes on with noise of its own.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from manyturn.agents.engine.engine import Reply
from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.play.episode import ContextFull
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.trainers.credit.audit.effects import END
from manyturn.trainers.credit_audit.common_random_numbers import Noise
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.group_episodes import GroupEpisode, GroupTurn, PlayedTask
from manyturn.trainers.credit_audit.rewindable_env import Situation, World
from manyturn.trainers.credit_audit.text_player import GROUP, Continued, StartTable, Wish, finite_return, played_turn

_MOST = 10**9  # more than any number of a continuation


class _ContinuationKey(EpisodeKey):
    """The key of a continuation: no two that are open together are equal, and those of one number draw alike."""

    def noise_seed(self, turn: int) -> int:
        return EpisodeKey(*self[:3], self.member % _MOST).noise_seed(turn)


class _Seat(NamedTuple):
    """As much of a seat as an agent asks for."""

    name: str

    async def expert(self) -> str:
        raise NotImplementedError("an agent with an engine asks no expert")

    async def snapshot(self) -> str:
        raise NotImplementedError("an agent without a search takes no snapshots")

    async def restore(self, snapshot: str) -> Answer:
        raise NotImplementedError("an agent without a search restores nothing")


@dataclass
class _Past:
    """One episode of the group: the observations that were answered, and the tokens of the answers."""

    answers: list[Answer]
    ledger: Ledger


class AgentAuditPlayer:
    """Plays with a language model.

    Args:
        agent: the policy; its engine draws.
        make: makes one more environment.
        together: episodes that are open at the same time.
    """

    def __init__(self, agent: Agent, make: Callable[[], World], config: AuditConfig, together: int = 64):
        self._agent, self._config = agent, config
        self._make, self._together = make, together
        self._worlds: list[World] = []
        self._past: dict[str, list[_Past]] = {}

    def group(self, task: Task) -> PlayedTask:
        self._past = {task.id: []}
        members = _run(self._together_all([self._episode(task, member) for member in range(self._config.group)]))
        table = StartTable()
        episodes = [self._entered(member, turns, table) for member, (turns, _, _) in enumerate(members)]
        self._past[task.id] = [past for _, past, _ in members]
        ended = zip(episodes, (answer for _, _, answer in members), strict=True)
        named = [past.answers[0].answer is not None for past in self._past[task.id]]
        played = [
            GroupEpisode(one, not end.terminated, end.success, end.observation, names_answer)
            for (one, end), names_answer in zip(ended, named, strict=True)
        ]
        return PlayedTask(task.id, played, table.starts)

    def continued(self, task: Task, wishes: Sequence[Wish]) -> list[Continued]:
        if task.id not in self._past:
            self.group(task)  # the same episodes again, after an interruption
        return _run(self._together_all([self._continue(task, wish, place) for place, wish in enumerate(wishes)]))

    def close(self) -> None:
        for world in self._worlds:
            world.close()

    async def _together_all(self, work: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        gate = asyncio.Semaphore(self._together)

        async def admitted(one: Coroutine[Any, Any, Any]) -> Any:
            async with gate:
                return await one

        return await asyncio.gather(*map(admitted, work))

    def _reset_seed(self, task: Task) -> int:
        return EpisodeKey(self._config.seed, GROUP, task.id, 0).reset_seed()

    async def _episode(
        self, task: Task, member: int
    ) -> tuple[list[tuple[GroupTurn, Situation, str, bool]], _Past, Answer]:
        """An episode: its turns, each with its situation, what the model knew, and whether chance took part."""
        world = self._worlds.pop() if self._worlds else self._make()
        player = self._agent.player(EpisodeKey(self._config.seed, GROUP, task.id, member), world.handle.instructions)
        past, turns, story = _Past([], player.ledger), list[tuple[GroupTurn, Situation, str, bool]](), ""
        seat: Any = _Seat(world.handle.name)
        answer = world.begin(task, self._reset_seed(task))
        try:
            while not answer.ended and len(turns) < world.max_turns:
                snapshot = world.snapshot()
                situation = Situation(snapshot, len(turns), answer.observation, answer.admissible, member=member)
                act = await player.act(answer, seat)
                after, by_chance = world.play(act.action)
                turn = played_turn(answer, act.action, after, world.counted(after.reward, after.parts))
                tokens = 1 if act.usage is None else act.usage.reply_tokens or 1
                turn = replace(
                    turn, format_valid=turn.format_valid and act.format_valid, tokens=tokens, forced=by_chance
                )
                turns.append((turn, situation, story, by_chance))
                past.answers.append(answer)
                story, answer = digest(story, answer.observation, act.reply), after
        except ContextFull:
            pass  # cut off, as in training
        finally:
            player.leave()
            self._worlds.append(world)
        return turns, past, answer

    @staticmethod
    def _entered(
        member: int, turns: Sequence[tuple[GroupTurn, Situation, str, bool]], table: StartTable
    ) -> list[GroupTurn]:
        """The turns with the numbers of their situations; those of one past and one state are one situation."""
        numbers = [table.number(situation, story) for _, situation, story, _ in turns]
        entered = []
        for k, (turn, situation, story, by_chance) in enumerate(turns):
            after = numbers[k + 1] if k + 1 < len(turns) else END
            if by_chance:
                # What the reply was belongs to it: another reply may mean the same action.
                forced = situation._replace(forced=turn.action, member=member)
                after = table.number(forced, f"{story}{member}")
            entered.append(replace(turn, start=numbers[k], after=after))
        return entered

    async def _continue(self, task: Task, wish: Wish, place: int) -> Continued:
        situation, past = wish.situation, self._past[task.id][wish.situation.member]
        world = self._worlds.pop() if self._worlds else self._make()
        key = EpisodeKey(self._config.seed, wish.stage, task.id, wish.number)
        open_as = _ContinuationKey(*key[:3], place * _MOST + wish.number)
        player = self._agent.player(open_as, world.handle.instructions)
        seat: Any = _Seat(world.handle.name)
        first, total, counted, turn = "", 0.0, 0.0, situation.turn
        try:
            world.turn_to(task, self._reset_seed(task), situation, Noise(key, 1).chance)
            for earlier in range(turn + (situation.forced is not None)):
                self._repeat(player, past, earlier, seat)
            answer, action = past.answers[turn], situation.forced
            while not answer.ended and turn < world.max_turns:
                if action is None:
                    action = (await player.act(answer, seat)).action
                answer, _ = world.play(action)
                counted += world.counted(answer.reward, answer.parts)
                total, turn, first, action = total + answer.reward, turn + 1, first or action, None
        except ContextFull:
            pass
        finally:
            player.leave()
            self._worlds.append(world)
        return Continued(finite_return(total, task), counted, first, max(1, turn - situation.turn))

    @staticmethod
    def _repeat(player: AgentPlayer, past: _Past, turn: int, seat: Any) -> None:
        """A turn of the episode once more, without the engine."""
        step, ledger = past.answers[turn], past.ledger
        logprobs, entropies = ledger.reply_logprobs(turn).tolist(), ledger.reply_entropies(turn).tolist()
        again = Reply(ledger.reply(turn), logprobs, "stop", ledger.spans[turn].version, entropies)
        player.take_down(step, player.prompt(step), again, player.choices(step, seat))


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Result of ``work``, in an event loop of a thread of its own, since a notebook has one in this thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="manyturn") as thread:
        return thread.submit(asyncio.run, work).result()
