"""An environment of an OpenEnv server, run against openenv 0.10.0: ``openenv:http://127.0.0.1:8000``.

Source: that package's ``openenv.core.env_server``. Each environment object holds one session at a time.
"""

import math
from typing import Any

import gymnasium
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.registration.env_registry import OutsideLost
from manyturn.envs.openenv.address import address_of
from manyturn.envs.openenv.connection import Connection
from manyturn.envs.openenv.faults import ActionRefused, BadAnswer
from manyturn.envs.openenv.server_description import About
from manyturn.envs.openenv.task_lists import ListedTasks
from manyturn.envs.openenv.text_conversion import Shapes
from manyturn.envs.openenv.turns import ServedTurn, read_turn

_NO_ACTION = "That is not an action: "


class ServedEnv(ListedTasks, gymnasium.Env[str, str]):
    """Environment of an OpenEnv server, as an environment of strings.

    A reward that the server leaves out adds nothing; an episode for which it never gives one is not scored. An action
    that is none for the server is answered here, and its turn does not reach it.

    Args:
        url: of the server.
        timeout: seconds that each of its answers may take.
        sessions: how many it takes at once from one process of ours; others wait.
        max_turns: truncates an episode; None leaves that to the server.
        action_field, observation_field: the fields of the server's actions and observations that the agent writes and
            reads. By default the one that holds text, or else the whole as JSON.
        success_above: the return above which an episode that terminated is a success, where the server does not say.

    Attributes:
        instructions: the server's description, and how an action is written.
        served_version: of the environment at the server; None where it gives none.
        splits: the server's; ``train`` alone, whose tasks are seeds, where it lists none.
        lacks: what the server does not offer, in words.
    """

    waits_outside = True

    metadata: dict[str, Any] = {"render_modes": []}
    harmless = ("timeout", "sessions", "max_turns", "action_field", "observation_field", "success_above")

    def __init__(
        self,
        url: str,
        timeout: float = 45.0,
        sessions: int | None = 16,
        max_turns: int | None = None,
        action_field: str | None = None,
        observation_field: str | None = None,
        success_above: float = 0.0,
    ):
        if timeout <= 0:
            raise ValueError(f"timeout = {timeout} must be above 0")
        if sessions is not None and sessions < 1:
            raise ValueError(f"sessions = {sessions} must be at least 1")
        self._address, self._seconds = address_of(url), timeout
        self._about = self._lists = About(self._address, timeout)
        self._shapes = Shapes(self._about.action, self._about.observation, action_field, observation_field)
        self.instructions = "\n\n".join(part for part in (self._about.description, self._shapes.rule) if part)
        self.served_version = self._about.version
        self.splits = self._about.splits or ("train",)
        self.max_turns, self.side_by_side, self.success_above = max_turns, sessions, success_above
        seeds = "" if self._about.splits else "tasks (seeds stand for them, in one split), "
        self.lacks = f"the server offers no {seeds}expert or snapshots"
        self.observation_space, self.action_space = TextSpace(), TextSpace()
        self._connection: Connection | None = None
        self._turn, self._live, self._paid = 0, False, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode of the task ``options["task"]``, a Task or its id, or of one that the seed draws."""
        super().reset(seed=seed)
        seed = seed if seed is not None else int(self.np_random.integers(2**32))
        task = self._named_or_drawn(options, seed)
        if self._about.splits:
            data = {"seed": seed, "split": task.split, "index": int(task.id.rpartition("/")[2])}
        else:
            data = {"seed": task.params["seed"]}
        self._live, self._turn, self._paid = False, 0, False
        turn = self._checked(self._begun(data), 0)
        if turn.done:
            raise BadAnswer(f"the server says that the episode of {task.id} is over before its first turn")
        self._live = True
        return self._read(turn), {**turn.info, "task": task.id, "split": task.split}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One turn. Raises OutsideLost, ServerRaised or BadAnswer, after each of which the episode is lost."""
        if not self._live or self._connection is None:
            raise ResetNeeded("the episode has ended, is lost or has not begun: call reset()")
        shaped = self._shapes.action(action)
        if shaped is None:
            return self._refused(self._shapes.rule or "it holds half of a surrogate pair.")
        try:
            data = self._connection.ask("step", shaped)
        except ActionRefused as refusal:
            return self._refused(f"{refusal}. {self._shapes.rule}".strip())
        except Exception:
            self._live = False
            raise
        self._turn += 1
        turn = self._checked(data, self._turn)
        self._paid |= turn.reward is not None
        self._live = not turn.done
        reward = turn.reward if turn.reward is not None else 0.0 if self._paid or not turn.done else math.nan
        return self._read(turn), reward, turn.done and not turn.truncated, turn.truncated, turn.info

    def close(self) -> None:
        """End the session."""
        self._live = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _begun(self, data: dict[str, Any]) -> Any:
        """The answer to a reset; a session that broke off since the last episode is opened once more."""
        if self._connection is not None:
            try:
                return self._connection.ask("reset", data)
            except OutsideLost:
                self.close()
            except Exception:
                self.close()
                raise
        self._connection = Connection(self._address, self._seconds)
        try:
            return self._connection.ask("reset", data)
        except Exception:
            self.close()
            raise

    def _checked(self, data: Any, turn: int) -> ServedTurn:
        """The turn that an answer tells; one that breaks a rule ends the session."""
        try:
            turn_facts = read_turn(data, turn)
            self._shapes.text(turn_facts.observation)
            return turn_facts
        except Exception:
            self.close()
            raise

    def _read(self, turn: ServedTurn) -> str:
        return self._shapes.text(turn.observation)

    def _refused(self, why: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return f"{_NO_ACTION}{why}", 0.0, False, False, {"format_valid": False, "reward_parts": {}}
