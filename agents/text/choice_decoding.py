"""Choice decoding: a reply is limited to the admissible commands of its turn, token by token or as a whole.

Each command is written as a demonstration would say it: in the reply format, with the end token, in the one way in
which the tokenizer writes it. By the token, only those are possible that go on to one of these replies. So the policy
is the model's distribution over the possible tokens, renormalised:

    pi(token) = exp(logit(token) / temperature) / sum over possible t of exp(logit(t) / temperature)

Only its end token ends a reply, so that a command may begin another. A token without an alternative is forced:
its log-probability and its entropy are 0, and nothing has to be computed to say it.

By the command, a reply is drawn as if the model drew freely, and again until that is one of these replies. So a first
word is as likely as all that it can go on to; ``command_tree.py`` has the formula. There too only one possible reply is
forced, and a token without an alternative has log-probability and entropy 0.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.command_tree import CommandTree, tree_of
from manyturn.agents.text.reply_format import ReplyFormat

Unit = Literal["token", "command"]
"""What is renormalised among the possible ones: each token, or the whole command."""

Allowed = tuple[int, ...]
"""The tokens that were possible at a place, the smallest first."""

_KEPT_TURNS, _KEPT_COMMANDS = 256, 16384  # members of a group stand before the same choice


class NoChoice(ValueError):
    """A turn has no command to choose, or one that no reply can mean; the text says which, and what would help."""


class TrieNode:
    """A place in the trie: what can be said after the tokens that led here.

    Attributes:
        allowed: the possible tokens; none after a full reply.
    """

    __slots__ = ("_next", "allowed")

    def __init__(self, replies: Sequence[Sequence[int]], depth: int):
        groups: dict[int, list[Sequence[int]]] = {}
        for ids in replies:
            if len(ids) > depth:
                groups.setdefault(ids[depth], []).append(ids)
        self.allowed: Allowed = tuple(groups)
        self._next = {token: TrieNode(group, depth + 1) for token, group in groups.items()}

    def after(self, token: int) -> "TrieNode":
        """The node after one of the possible tokens; raises KeyError for another."""
        return self._next[token]


class Choices:
    """The replies that are possible at a turn.

    >>> choices = Choices([[5, 0], [7, 3, 0], [5, 6, 0]])
    >>> choices.first.allowed, choices.along([5, 6, 0]), choices.along([5, 7])
    ((5, 7), [(5, 7), (0, 6), (0,)], None)

    Args:
        replies: token ids of each; none may begin another.
        unit: how one is drawn.

    Attributes:
        replies: the different ones, in order.
        first: where a reply begins.
    """

    def __init__(self, replies: Iterable[Sequence[int]], unit: Unit = "token"):
        self.unit: Unit = unit
        self.replies = tuple(sorted({tuple(ids) for ids in replies}))
        if not self.replies or not self.replies[0]:
            raise ValueError("give one reply at least, each of one token at least")
        if odd := next((a for a, b in pairwise(self.replies) if b[: len(a)] == a), None):
            raise ValueError(f"the reply {list(odd)} begins another, so that it has no end: add an end token")
        self.first = TrieNode(self.replies, 0)

    @cached_property
    def tree(self) -> CommandTree | None:
        """The tree of the replies where whole ones are drawn; None where tokens are."""
        return tree_of(self.replies) if self.unit == "command" else None

    @property
    def forced(self) -> tuple[int, ...] | None:
        """The only possible reply, which needs no model to say and has probability 1; None if there is none such."""
        return self.replies[0] if len(self.replies) == 1 else None

    @property
    def longest(self) -> int:
        """Tokens of the longest reply."""
        return max(map(len, self.replies))

    def along(self, ids: Sequence[int]) -> list[Allowed] | None:
        """Possible tokens at each place of a reply; None if the reply is none of the choices."""
        place, possible = self.first, list[Allowed]()
        for token in ids:
            if token not in place.allowed:
                return None
            possible.append(place.allowed)
            place = place.after(token)
        return None if place.allowed else possible


class ReplyChoices:
    """Makes the choices of a turn from its admissible commands.

    Args:
        form: how a reply says which command is meant.
        template: of the model.
        unit: how one is drawn.
    """

    def __init__(self, form: ReplyFormat, template: ChatTemplate, unit: Unit = "token"):
        self._form, self._template = form, template
        self._unit: Unit = unit
        self._ids = lru_cache(_KEPT_COMMANDS)(self._written)
        self._choices = lru_cache(_KEPT_TURNS)(self._of)

    def of(self, admissible: Sequence[str] | None) -> Choices:
        """The choices among these commands, each counting once. Raises NoChoice."""
        if not admissible:
            fault = "does not list admissible commands" if admissible is None else "lists no admissible command"
            raise NoChoice(f"{fault} here, which agent.only_admissible chooses from: have admissible() list some")
        return self._choices(tuple(dict.fromkeys(admissible)))

    def _of(self, commands: tuple[str, ...]) -> Choices:
        return Choices(map(self._ids, commands), self._unit)

    def _written(self, command: str) -> tuple[int, ...]:
        """The reply that means a command."""
        ids = self._template.reply(self._form.render(command))
        read = self._form.read(self._template.decode(ids))
        if not read.format_valid or read.action != command:
            raise NoChoice(
                f"lists the admissible command {command!r:.80}, which no reply can mean: written in agent.format it is "
                f"read as {read.action!r:.80}; have admissible() list what is read, or leave out agent.only_admissible"
            )
        return tuple(ids)
