"""A model behind the chat completions protocol that knows how doors are opened, and counts what it reads and says."""

import re
import threading
from typing import Any

from needs_endpoint import completion

_TOKEN = re.compile(r"\S+|\s+")  # a word, or the blank between two


class DoorsModel:
    """Answers bodies of requests, cut where they want it.

    Attributes:
        thought: what stands before each reply, between tags of thinking.
        reply: the words around a move.
        prompts, replies: tokens of all answers, as their ``usage`` says.
    """

    def __init__(self) -> None:
        self.thought, self.reply = "", "<action>{}</action>"
        self.prompts = self.replies = 0
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> bytes:
        said = self.reply.format(move(body["messages"]))
        tokens = _TOKEN.findall(f"<think>{self.thought}</think>{said}" if self.thought else said)
        longest = body["max_tokens"]
        prompt = sum(len(_TOKEN.findall(message["content"])) for message in body["messages"])
        reply = min(len(tokens), longest)
        with self._lock:
            self.prompts += prompt
            self.replies += reply
        return completion("".join(tokens[:longest]), prompt, reply, "length" if len(tokens) > longest else "stop")


def move(messages: list[dict[str, str]]) -> str:
    """The next door of the order that was read."""
    order = next(found for m in messages if (found := re.search(r"Order: ([\w, ]+)\.", m["content"])))
    opened = sum("It opens." in message["content"] for message in messages if message["role"] == "user")
    return f"open {order[1].split(', ')[opened]}"
