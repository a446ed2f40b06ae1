"""Request arguments that limit vLLM's reply to choices; vLLM is not imported."""

from typing import Any

from manyturn.agents.text.choices import Choices

PROCESSOR = "manyturn.agents.engine.vllm.choice_processor:LimitedReplies"
REPLIES = "manyturn_replies"  # the name of the extra argument that holds them


def limits(choices: Choices | None) -> dict[str, Any]:
    """Further sampling parameters of a request whose reply is limited."""
    return {} if choices is None else {"extra_args": {REPLIES: [list(ids) for ids in choices.replies]}}
