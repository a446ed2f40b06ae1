"""Users that call tools before they speak: the environment runs the calls, and the user sees what came of them."""

from typing import NamedTuple

from manyturn.envs.tools.toolset import Answered, Toolset
from manyturn.envs.users.protocol import Heard, User, UserError

MOST_CALLS = 32


class Spoken(NamedTuple):
    """Last words of a user.

    Attributes:
        heard: without calls.
        rounds: the answers that it got before, for each time that it asked for calls; an answer without a call was to
            a text that could not be read.
    """

    heard: Heard
    rounds: tuple[tuple[Answered, ...], ...]


def spoken(user: User, heard: Heard, tools: Toolset, most: int = MOST_CALLS) -> Spoken:
    """Run the calls that a user asks for until it speaks.

    Args:
        heard: what it made of the agent's text.
        tools: its own; each call may be anything, what is wrong with it is answered with text.
        most: calls in one turn.

    Raises:
        UserError: it asks for more calls than that, or the user itself raised it.
        ToolFault: a tool broke.
    """
    rounds: list[tuple[Answered, ...]] = []
    while heard.calls:
        if sum(map(len, rounds)) + len(heard.calls) > most:
            raise UserError(f"the user {user.name} asks for more than {most} calls in one turn")
        rounds.append(tuple(tools.answer(call) for call in heard.calls))
        heard = user.see([answered.text for answered in rounds[-1]])
    return Spoken(heard, tuple(rounds))
