"""The short way to write a tool call: a command line, ``view calc.py 1 20``, in place of JSON."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.tools.calls import BadCall, call_text
from manyturn.envs.tools.tool import Schema


def call_of(line: str, tools: Sequence[Schema]) -> str:
    """The canonical text of the call that a command line means. Raises BadCall.

    Words are split as a shell splits them. They are the arguments in the order of the tool's parameters; the only
    parameter of a tool takes all that follows the name, as it stands.
    """
    name, _, rest = line.strip().partition(" ")
    parameters_of = {tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in tools}
    if name not in parameters_of:
        raise BadCall(f"no command {name!r:.80}; there are {', '.join(parameters_of)}")
    parameters: Mapping[str, Any] = parameters_of[name]
    if len(parameters) == 1:
        words = [rest] if rest.strip() else []
    else:
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise BadCall(
                f"{name}: {str(error).lower()}: quote an argument with the quotes it does not contain"
            ) from None
    if len(words) > len(parameters):
        raise BadCall(f"{name} takes {_usage(parameters)}, not {len(words)} arguments: quote each argument")
    pairs = zip(parameters.items(), words, strict=False)
    return call_text(name, **{key: _value(word, shape["type"]) for (key, shape), word in pairs})


def line_of(name: str, **arguments: Any) -> str:
    """The command line of a call, the inverse of ``call_of``.

    >>> line_of("edit", path="calc.py", old="a + b", new="a - b")
    "edit calc.py 'a + b' 'a - b'"
    """
    if name == "bash":
        return f"bash {arguments['command']}"
    return " ".join([name, *(shlex.quote(str(value)) for value in arguments.values())])


def _usage(parameters: Mapping[str, Any]) -> str:
    return " ".join(key.upper() for key in parameters) or "no arguments"


def _value(word: str, kind: str) -> Any:
    return int(word) if kind == "integer" and word.isdecimal() and len(word) < 10 else word
