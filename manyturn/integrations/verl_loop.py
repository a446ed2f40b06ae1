"""verl: an agent loop that plays what ``manyturn export --as dataset`` wrote, run by verl 0.9.1.

Its rows have the task and the seed, its ``world.json`` the environment. The reply, without the white space around it,
is the action; observations are user's messages, put in by verl's own builder of tokens. ``reward_score`` is the
episode's return. ``extra_fields["credit"]`` tells of the turns, as ``manyturn.integrations.verl`` reads it.

An environment that raises, and a reward that is not known, raise here too: neither is ever a reward of 0. Source: the
package verl 0.9.1, ``verl.experimental.agent_loop``.
"""

import math
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import (  # pyright: ignore[reportMissingImports]
    AgentLoopBase,
    AgentLoopOutput,
)

from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.export.exported_env import Exported, task_of
from manyturn.integrations.rollout_fields import rollout_fields

Message = dict[str, Any]


class EpisodeLoop(AgentLoopBase):  # pyright: ignore[reportGeneralTypeIssues]
    """One episode of a row.

    Args:
        folder: what ``manyturn export --as dataset`` wrote.
        options: what verl gives.
    """

    def __init__(self, *arguments: Any, folder: str, **options: Any):
        super().__init__(*arguments, **options)
        self._folder = Path(folder)
        self._most = self.rollout_config.response_length

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play it. Raises EnvError, or PanelError for a row of another export."""
        plain = {name: getattr(value, "tolist", lambda v=value: v)() for name, value in row.items()}
        world, task = Exported.read(self._folder), task_of(self._folder, plain)
        handle = EnvHandle(world.name, world.args, world.wrappers)
        try:
            now = handle.reset(task, int(plain["seed"]))
            messages = [dict(message) for message in row["raw_prompt"]]
            if messages[-1]["content"] != now.observation:
                raise EnvError(f"{task.id} begins in another way than its row says: export it again")
            return await self._played(handle, now, messages, sampling_params)
        finally:
            handle.close()

    async def _played(self, handle: EnvHandle, now: Answer, messages: list[Message], sampling: Any) -> AgentLoopOutput:
        ids = begins = await self.ct_build_initial_tokens(messages)
        mask, logprobs, counts, turns, request = list[int](), None, list[int](), list[tuple[Answer, Answer]](), uuid4()
        while True:
            output = await self.server_manager.generate(
                request_id=request.hex, prompt_ids=ids, sampling_params=sampling
            )
            extra = {"assistant_logprobs": output.log_probs} if output.log_probs else {}
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                ids, output.token_ids, mask, (logprobs or []) if extra else None, **extra
            )
            ids = merged.token_ids
            counts.append(sum(mask) - sum(counts))
            text = self.tokenizer.decode(output.token_ids, skip_special_tokens=True)
            before, now = now, handle.step(text.strip())
            if math.isnan(now.reward):
                raise EnvError(f"what turn {len(turns) + 1} is worth is not known, so the episode has no reward")
            turns.append((before, now))
            messages = [*messages, {"role": "assistant", "content": text}]
            if now.ended or len(mask) >= self._most:
                break
            longer = [*messages, {"role": "user", "content": now.observation}]
            merged, mask, logprobs = await self.ct_merge_context_msg(messages, longer, ids, mask, logprobs)
            counts[-1] -= sum(counts) - sum(mask)  # a template may take back what ended the reply
            if len(mask) >= self._most:
                break
            ids, messages = merged.token_ids, longer
        return self._output(ids, len(begins), mask, logprobs, turns, counts)

    def _output(
        self,
        ids: list[int],
        begins: int,
        mask: list[int],
        logprobs: list[float] | None,
        turns: list[tuple[Answer, Answer]],
        counts: list[int],
    ) -> AgentLoopOutput:
        count = min(self._most, len(ids) - begins, len(mask))
        counts[-1] -= sum(counts) - sum(mask[:count])  # what is longer than verl's limit is cut off the last reply
        rewards = [after.reward for _, after in turns]
        return AgentLoopOutput(
            prompt_ids=ids[:begins],
            response_ids=ids[begins : begins + count],
            response_mask=mask[:count],
            response_logprobs=logprobs[:count] if logprobs else None,
            reward_score=sum(rewards),
            num_turns=2 * len(turns),
            metrics={},
            extra_fields={
                "credit": rollout_fields(turns) | {"tokens": counts},
                "turn_scores": rewards,
                "tool_rewards": [],
            },
        )
