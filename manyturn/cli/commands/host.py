"""The commands that work for a training run elsewhere: hosts of environments, and samplers."""

import os
from typing import Literal

from manyturn.cli.commands.serve import TOKEN
from manyturn.terminal import command_exit
from manyturn.terminal.env_args import EnvArgs


def host(
    env: str | None = None,
    *,
    env_args: EnvArgs = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    limit: int = 512,
    workers: int = 2,
    timeout: float = 60.0,
) -> None:
    """Host environments for a training run, until Ctrl-C.

    The line that is printed has the address, which the run names in placement.hosts, with placement.kind = static. One
    run at a time plays here; see docs/many-machines.md.

    Parameters
    ----------
    env
        The only environment that may be built: an id, or FILE.py:Class. Default: any that is registered here; a run
        cannot have a file executed.
    env_args
        Arguments that decide what runs on this machine, such as programs and images, and that a run may therefore only
        repeat: a TOML table, or by name, as in --env.args.python PROGRAM. All others come from the run.
    host
        Address to listen on. Any but this machine's own needs a token.
    port
        0 takes any that is free.
    token
        What a run must send. Default: the environment variable MANYTURN_TOKEN, which other users of this machine do not
        see.
    limit
        Episodes open at once.
    workers
        Processes that host the environment; 0 keeps it in this one, which then answers nothing while a turn takes its
        time.
    timeout
        Seconds that the environment may take for one answer, with workers.
    """
    from manyturn.serving.wires.registry import installed

    with installed("manyturn host", "hosts"):
        from manyturn.serving.env_host import Hosting
        from manyturn.serving.env_host import host as run
        from manyturn.serving.server import Listening

    hosting = Hosting(env, env_args or {}, limit, workers, timeout)
    place = Listening(host, port, token or os.environ.get(TOKEN) or None)
    command_exit.run(
        run(hosting, place, lambda url: print(f"{env or 'environments'} at {url} (Ctrl-C ends)", flush=True))
    )


def sampler(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Draw the tokens of a training run elsewhere, until Ctrl-C.

    The line that is printed has the address, which the run names in placement.samplers, with placement.kind = static.
    The run says which engine draws with which model, and sends its weights. One run at a time draws here; see
    docs/many-machines.md.

    Parameters
    ----------
    host
        Address to listen on. Any but this machine's own needs a token.
    port
        0 takes any that is free.
    token
        What a run must send. Default: the environment variable MANYTURN_TOKEN, which other users of this machine do not
        see.
    device
        Where the model is; auto takes a GPU if there is one.
    """
    from manyturn.serving.wires.registry import installed

    with installed("manyturn sampler", "hosts"):
        from manyturn.serving.sampler import sample
        from manyturn.serving.server import Listening

    place = Listening(host, port, token or os.environ.get(TOKEN) or None)
    command_exit.run(sample(device, place, lambda url: print(f"a sampler at {url} (Ctrl-C ends)", flush=True)))
