"""An environment of an Open Reward Standard server, run against openreward 0.1.167: ``ors:http://127.0.0.1:8080``.

One object holds one session at a time. The hosted service of OpenReward was not tried.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.openenv.address import address_of
from manyturn.envs.openenv.faults import BadAnswer, short
from manyturn.envs.openenv.task_lists import ListedTasks, TaskLists
from manyturn.envs.openenv.turns import ServedTurn, read_turn
from manyturn.envs.ors.session import Session
from manyturn.envs.ors.tool_texts import Tools, schemas_of, text_of
from manyturn.envs.tools.calls import BadCall, CallRequest
from manyturn.envs.tools.tool_prompt import with_tools

KEY = "OPENREWARD_API_KEY"
"""Environment variable of the key, which is sent as X-API-Key and as a bearer token."""
_MISTAKES = ("not_found", "name_collision", "input_validation")


class _Result(NamedTuple):
    """Result of one call; ``turn`` is None where the call was none for the server."""

    text: str
    turn: ServedTurn | None


class RewardServerEnv(ListedTasks, gymnasium.Env[str, str]):
    """Environment of an Open Reward Standard server, as an environment of strings.

    An action is a call of a tool, or a list of them, played in order until the episode is over; the turn's reward is
    the sum of theirs. A reward that the server leaves out adds nothing; an episode for which it never gives one is not
    scored. A call that is none for the server is answered by its error, and earns nothing.

    Args:
        url: of the server.
        variant: name of the environment there; default: the first that it lists.
        timeout: seconds that each of its answers may take.
        sessions: how many it takes at once from one process of ours; others wait.
        max_turns: truncates an episode; None leaves that to the server.
        text_tool: tool that takes a reply without a call. Default: the server's terminal tool, or its only tool if that
            takes one text.
        seed_entry: entry of a task's specification that takes the episode's seed. Servers of manyturn have ``seed``.
        success_above: the return above which an episode that is over is a success, where the server does not say.

    Attributes:
        instructions: how an action is written, and the tools. The task's prompt is the first observation.
        splits: the server's.
    """

    waits_outside = True

    metadata: dict[str, Any] = {"render_modes": []}
    harmless = ("variant", "timeout", "sessions", "max_turns", "text_tool", "seed_entry", "success_above")

    def __init__(
        self,
        url: str,
        variant: str | None = None,
        timeout: float = 45.0,
        sessions: int | None = 16,
        max_turns: int | None = None,
        text_tool: str | None = None,
        seed_entry: str | None = None,
        success_above: float = 0.0,
    ):
        if timeout <= 0:
            raise ValueError(f"timeout = {timeout} must be above 0")
        if sessions is not None and sessions < 1:
            raise ValueError(f"sessions = {sessions} must be at least 1")
        address = address_of(url, "ors", KEY)
        bearer = address.headers.get("Authorization", "").removeprefix("Bearer ")
        self._address = address._replace(headers={**address.headers, **({"X-API-Key": bearer} if bearer else {})})
        self._lists, self._seconds = TaskLists(self._address, timeout, variant), timeout
        self.splits = self._lists.splits
        if not self.splits:
            raise NeedsSetup(f"{address.http} lists no splits: is it a server of the Open Reward Standard?")
        listed = self._lists.response("GET", f"/{self._lists.name}/tools")
        listed = listed if isinstance(listed, dict) else {}
        self._tools = Tools(listed.get("tools"), listed.get("terminal_tool"), text_tool)
        version = self._lists.response("GET", "/version")
        self.served_version = short(version.get("version"))[:100] if isinstance(version, dict) else None
        self.instructions, self._seed_entry = self._tools.instructions, seed_entry
        self.max_turns, self.side_by_side, self.success_above = max_turns, sessions, success_above
        self.lacks = "the server offers no expert or snapshots"
        self.observation_space, self.action_space = TextSpace(), TextSpace()
        self._session: Session | None = None
        self._calls, self._paid = 0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode of the task ``options["task"]``, a Task or its id, or of one that the seed draws."""
        super().reset(seed=seed)
        seed = seed if seed is not None else int(self.np_random.integers(2**32))
        task = self._named_or_drawn(options, seed)
        self.close()
        self._calls, self._paid = 0, False
        session = Session(self._address, str(self._lists.name), self._seconds)
        try:
            prompt, tools = session.begin(self._task_of(task, seed))
            text, more = text_of(prompt), schemas_of(tools)
        except Exception:
            session.close()
            raise
        self._session = session
        names = [schema["function"]["name"] for schema in self._tools.schemas]
        own = [schema for schema in more if schema["function"]["name"] not in names]
        return with_tools(text, own), {"task": task.id, "split": task.split, "reward_parts": {}}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One turn. Raises OutsideLost, ServerRaised or BadAnswer, after each of which the episode is lost."""
        if self._session is None:
            raise ResetNeeded("the episode has ended, is lost or has not begun: call reset()")
        try:
            calls = self._tools.calls(action)
        except BadCall as error:
            return f"Error: {error}", 0.0, False, False, {"format_valid": False, "reward_parts": {}}
        results: list[_Result] = []
        try:
            for call in calls:
                results.append(self._played(self._session, call))
                if (turn := results[-1].turn) is not None and turn.done:
                    break
        except Exception:
            self.close()
            raise
        text = "\n".join(result.text for result in results)
        turns = [result.turn for result in results if result.turn is not None]
        rewards = [turn.reward for turn in turns if turn.reward is not None]
        done, truncated = bool(turns) and turns[-1].done, bool(turns) and turns[-1].truncated
        self._paid |= bool(rewards)
        if done:
            self.close()
        info = _info(turns, is_understood=len(turns) == len(results))
        reward = sum(rewards) if rewards or self._paid or not done else math.nan
        return text, reward, done and not truncated, truncated, info

    def close(self) -> None:
        """End the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _task_of(self, task: Task, seed: int) -> dict[str, Any]:
        if self._seed_entry is None:
            return {"split": task.split, "index": int(task.id.rpartition("/")[2])}
        return {"task_spec": {**task.params, self._seed_entry: seed}}

    def _played(self, session: Session, call: CallRequest) -> _Result:
        result = session.call(*call)
        if not result["ok"]:
            reason, text = result.get("reason"), short(result.get("error"))
            if reason is not None and reason not in _MISTAKES:
                raise BadAnswer(f"the server refused a call: {text}")
            return _Result(f"Error: {text}", None)
        output = result.get("output")
        if not isinstance(output, dict):
            raise BadAnswer(f"the result of a tool is {short(result)}")
        self._calls += 1
        served = {"reward": output.get("reward"), "done": output.get("finished"), "metadata": output.get("metadata")}
        text = text_of(output.get("blocks"))
        return _Result(text, read_turn({"observation": text, **served}, self._calls))


def _info(turns: Sequence[ServedTurn], *, is_understood: bool) -> dict[str, Any]:
    """Facts of a turn of several calls: those of the last, with the parts of all."""
    parts: dict[str, float] = {}
    for turn in turns:
        for name, value in turn.info.get("reward_parts", {}).items():
            parts[name] = parts.get(name, 0.0) + value
    last = dict(turns[-1].info) if turns else {"reward_parts": {}}
    mistaken = {} if is_understood else {"understood": False}
    return {**last, **({"reward_parts": parts} if "reward_parts" in last else {}), **mistaken}
