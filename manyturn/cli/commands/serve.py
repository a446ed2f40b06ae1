"""The command that serves an environment to programs elsewhere."""

import os
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from manyturn.terminal import command_exit
from manyturn.terminal.env_args import EnvArgs, read_wrappers

TOKEN = "MANYTURN_TOKEN"
CLIENTS, LIMITS = (Parameter(group=group) for group in map(Group.create_ordered, ("Clients", "Limits")))


def serve(
    env: str,
    *,
    wire: Annotated[Literal["mcp", "nemo-gym", "openenv", "ors"], Parameter(name="--as")],
    env_args: EnvArgs = None,
    wrappers: Annotated[str | None, Parameter(name=("--env.wrappers", "--wrappers"))] = None,
    split: list[str] | None = None,
    held_out: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
    host: Annotated[str, CLIENTS] = "127.0.0.1",
    port: Annotated[int, CLIENTS] = 0,
    token: Annotated[str | None, CLIENTS] = None,
    limit: Annotated[int, LIMITS] = 64,
    idle: Annotated[float, LIMITS] = 1800.0,
    workers: Annotated[int, LIMITS, Parameter(name=("--env.workers", "--workers"))] = 2,
    timeout: Annotated[float, LIMITS, Parameter(name=("--env.timeout", "--timeout"))] = 60.0,
) -> None:
    """Serve an environment to programs elsewhere, until Ctrl-C.

    The line that is printed has the address.

    An error of the environment is never a reward: clients get a typed error, as docs/serving.md says.

    Parameters
    ----------
    env
        Environment: an id, FILE.py:Class, or another project's, such as openenv:URL.
    wire
        mcp: a server of the Model Context Protocol over streamable HTTP. nemo-gym: a resources server of NeMo Gym, for
        its gymnasium_agent. openenv: a server of OpenEnv, with a session for each WebSocket. ors: a server of the Open
        Reward Standard, with a reward in each result of a tool.
    env_args
        Arguments of its constructor: a TOML table, such as {difficulty = "hard"}, or by name, as in
        --env.args.difficulty hard.
    wrappers
        Turn-level rewards as a TOML list, such as [{name = "turn_cost", cost = 0.01}].
    split
        Splits that clients may play, and no others; default: train. Give it once for each. Tasks are drawn from the
        first, if a client names neither task nor split.
    held_out
        Let clients play other splits than train too, as --split names them. A policy that learns from their tasks has
        no held-out figures any more.
    seed
        Seeds of episodes whose clients name none derive from it.
    host
        Address to listen on. Any but this machine's own needs a token.
    port
        0 takes any that is free.
    token
        What clients must send, as Authorization: Bearer TOKEN. Default: the environment variable MANYTURN_TOKEN, which
        other users of this machine do not see.
    limit
        Episodes open at once; further ones are refused until one ends.
    idle
        Seconds without a request after which an episode is closed.
    workers
        Processes that host the environment; 0 keeps it in this one, which stands still while it answers.
    timeout
        Seconds that the environment may take for one answer, with workers.
    """
    from manyturn.serving.wires.registry import wire_of

    chosen = wire_of(wire)
    from manyturn.serving.server import Listening, Served
    from manyturn.serving.server import serve as run

    splits = split or ["train"]
    others = [name for name in splits if not name.startswith("train")]
    if others and not held_out:
        raise ValueError(f"--split {others[0]} is held out: if no client learns from its tasks, add --held-out")
    if held_out and not others:
        raise ValueError("--held-out has no effect on train: leave it out, or name the split with --split")
    place = Listening(host, port, token or os.environ.get(TOKEN) or None)
    served = Served(
        env,
        env_args or {},
        read_wrappers(wrappers or []),
        splits=splits,
        seed=seed,
        idle=idle,
        limit=limit,
        workers=workers,
        timeout=timeout,
    )

    def announce(url: str) -> None:
        print(f"{env} as {wire}: {url}{chosen.path} (Ctrl-C ends)", flush=True)

    command_exit.run(run(served, place, chosen.app, announce))
