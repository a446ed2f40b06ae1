"""How a request tells vLLM which replies are possible; vLLM is not imported."""

from typing import Any

from manyturn.agents.text.choices import Choices

PROCESSOR = "manyturn.agents.engine.vllm.choice_processor:LimitedReplies"
REPLIES = "manyturn_replies"  # the name of the extra argument that holds them


def limits(choices: Choices | None) -> dict[str, Any]:
    """What a request's sampling parameters have more, to limit its reply."""
    return {} if choices is None else {"extra_args": {REPLIES: [list(ids) for ids in choices.replies]}}
