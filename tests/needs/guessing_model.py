"""A model at an endpoint that plays GuessNumber by what its prompt says, and writes lessons by what it is shown."""

import itertools
import re
from typing import Any

from needs_endpoint import completion

LESSON = "guess the middle of what is left"
_WRITES = "You help an agent"


def is_writing(body: dict[str, Any]) -> bool:
    """True for a request for a text."""
    return any(message["role"] == "system" and _WRITES in message["content"] for message in body["messages"])


def guessing(body: dict[str, Any]) -> bytes:
    """The answer to a request: a text, or a guess.

    It counts up from the lowest number, which is too slow. Where the lesson stands in its system text, and in a
    quarter of its sampled episodes, it takes the middle.
    """
    system, last = body["messages"][0]["content"], body["messages"][-1]["content"]
    tokens = sum(len(message["content"]) for message in body["messages"]) // 4
    if is_writing(body):
        return completion(_text(last), tokens, 12)
    low, high = map(int, re.findall(r"number from (\d+) to (\d+)", body["messages"][1]["content"])[0])
    answers = [message["content"] for message in body["messages"] if message["role"] == "user"][1:]
    guesses = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    for guess, answer in zip(guesses, answers, strict=True):
        number = int(re.findall(r"guess (\d+)", guess)[0])
        low, high = (number + 1, high) if "low" in answer else (low, number - 1)
    lucky = body["temperature"] > 0 and low % 4 == 0 and body["seed"] % 2 == 0
    number = (low + high) // 2 if LESSON in system or lucky else low
    return completion(f"<action>guess {number}</action>", tokens, 6)


def _text(prompt: str) -> str:
    """A lesson, where the prompt shows how counting up failed."""
    if "list of lessons of an agent" in prompt:
        new = re.findall(r"^- (.+)$", prompt.partition("These are new lessons")[2], re.MULTILINE)
        known = prompt.partition("These are new lessons")[0]
        return f"ADD: {new[0]}" if new and new[0] not in known else "NONE"
    steps = [int(number) for number in re.findall(r"^Done: guess (\d+)", prompt, re.MULTILINE)]
    counted_up = any(second - first == 1 for first, second in itertools.pairwise(steps))
    if "Summarise the attempt" in prompt:
        return f"It {'counted up' if counted_up else 'took the middle'}, {re.findall('End: (.+)', prompt)[0]}"
    contrast = "It counted up" in prompt and "(success" in prompt and "(failure" in prompt
    return f"LESSON: {LESSON}." if counted_up or contrast else "LESSON: be brave."
