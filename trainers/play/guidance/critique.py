"""Critiques of failed attempts: a later member of the group reads what was wrong with an earlier one.

    critic "scripted"        the turns at which the attempt did otherwise than the expert would have, and what it would
    critic "openai:MODEL"    the words of a language model that reads the attempt, at OPENAI_BASE_URL; so too
                             openai-responses:MODEL and anthropic:MODEL

Source: Critique-GRPO, arXiv 2506.03106, and the authors' code (zhangxy-2019/critique-GRPO): a reply is refined after a
critique, and the refinement is learnt from after the prompt without it.

Implementation:
1. Each round has its own attempts to criticise: the first those without a text, later ones those of the round before.
   Members of a round read critiques of different attempts, as far as there are as many.
2. The scripted critic repeats the attempt in the group's world and asks the expert before each turn. An attempt that
   did at every turn what the expert would do gets no critique.
3. The model is asked at temperature 0, and its answer is written to a journal before anything is drawn after it. Where
   it does not answer in three attempts, or says nothing, the run stops.

Differences: theirs criticises every reply of a group, and takes one refinement in place of a reply; here only groups
without a success are criticised, and the refinements are further members. Their weight of refined tokens is the
modulation ``policy_shaping``; theirs has no clipping, which is an option of the objective.

Watch: ``guided_success``, and the critiques themselves, which the report shows below the first observation.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.users.endpoint.chat_completion import Choice, Passing
from manyturn.envs.users.endpoint.llm_client import AskedModel, ModelOptions, Unanswered
from manyturn.envs.users.endpoint.protocols.registry import ENDPOINT_WORD, endpoint_model
from manyturn.trainers.play.guidance.expert_replay import expert_words
from manyturn.trainers.play.guidance.guidance import GUIDANCE, GuidanceConfig, Guide, Texts, Workshop

_SCRIPTED = "scripted"
_TOGETHER = 16  # requests to a model, after which its answers are written down
_LIMITS: dict[str, Any] = {
    "max_tokens": 2048,
    "longest": 8000,
    "timeout": 300.0,
}  # a critic may reason before it answers
_ASKED = (
    "You read a failed attempt at a task. Say in a few short sentences what was wrong with it, and what to do instead. "
    "Your words are read by the one who tries again.\n\nThe task:\n{}"
)


class CritiqueConfig(GuidanceConfig):
    name: Literal["critique"] = "critique"
    rounds: int = Field(default=2, ge=1)
    """Rounds of refinement: attempts of a later one read critiques of the one before."""
    critic: str = Field(default=_SCRIPTED, pattern=rf"^({_SCRIPTED}|{ENDPOINT_WORD})$")
    """Author of the critiques: scripted, from the environment's expert, or the model of an endpoint: openai:MODEL,
    openai-responses:MODEL or anthropic:MODEL."""
    turns: Annotated[int, OnlyWith("critic", _SCRIPTED)] = Field(default=100, ge=1)
    """Most turns that a scripted critique corrects, the first ones."""

    @property
    def levels(self) -> int:
        return self.rounds

    @property
    def together(self) -> int | None:
        return None if self.critic == _SCRIPTED else _TOGETHER

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.critic == _SCRIPTED and env is not None and not env.has_expert:
            return (
                f"rollout.guidance.critic = 'scripted' asks the expert, which {env.name} does not have: override "
                "expert() in the environment, or give a model, critic = 'openai:MODEL'"
            )
        return None


def critique(attempt: Episode, words: Sequence[str], turns: int) -> str | None:
    """The words of a scripted critique; None where the expert would have done the same.

    Args:
        words: the expert's action at each of the attempt's turns, as far as it could be asked.
        turns: most that are corrected.
    """
    pairs = zip(attempt.turns, words, strict=False)
    wrong = [
        (number, turn.action or turn.reply, word) for number, (turn, word) in enumerate(pairs, 1) if turn.action != word
    ]
    return spoken(wrong[:turns]) if wrong else None


def spoken(wrong: Sequence[tuple[int, str, str]]) -> str:
    """Corrections in the words of a critique: numbers of turns, actions, and what would have been right.

    >>> spoken([(1, "take red", "take blue")])
    'Critique: turn 1: not take red, but take blue.'
    """
    parts = [f"turn {number}: not {action}, but {right}" for number, action, right in wrong]
    return f"Critique: {'; '.join(parts)}."


@GUIDANCE.register(CritiqueConfig)
async def critiques(workshop: Workshop, guides: Sequence[Guide], config: CritiqueConfig) -> Texts:
    """The critique of each guide's attempt."""
    sources = [guide.source for guide in guides]
    if config.critic == _SCRIPTED:
        words = await expert_words(workshop, sources)
        return [critique(source, words.get(source.key, ()), config.turns) for source in sources]
    try:
        protocol, name = endpoint_model(config.critic)
        model = AskedModel(ModelOptions.model_validate({"model": name, "protocol": protocol, **_LIMITS}))
    except ValueError as error:
        raise TooManyErrors(f"rollout.guidance.critic = {config.critic!r}: {error}") from error
    answers = await asyncio.gather(*(asyncio.to_thread(_answer, workshop, model, source) for source in sources))
    return [f"Critique: {answer}" for answer in answers]


def _answer(workshop: Workshop, model: AskedModel, attempt: Episode) -> str:
    rules = workshop.seats.of(attempt.task).facts.instructions
    lines = [f"{turn.observation}\n> {turn.action or turn.reply}" for turn in attempt.turns]
    messages = [
        {"role": "system", "content": _ASKED.format(rules)},
        {"role": "user", "content": "\n\n".join([*lines, attempt.last])},
    ]
    try:
        return model.ask(messages, model.deadline(), _line)
    except Unanswered as error:
        raise TooManyErrors(
            f"the critic {error}: see that its endpoint answers and continue with --resume, or set critic = 'scripted'"
        ) from error


def _line(choice: Choice) -> str:
    """The words of an answer in one line. Raises Passing where there are none."""
    words = " ".join(choice.text.split())
    if not words:
        raise Passing("an empty reply")
    return words
