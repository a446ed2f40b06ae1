"""The process of a ``OneShot``: does one piece of work and writes what it yields.

Started as ``python -P -m manyturn.envs.hosting.local.subprocess_call_main``. The one line on standard input says what
to do; what is printed goes to standard error.
"""

import atexit
import importlib
import os
import traceback
from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.plugins import load_plugins
from manyturn.envs.hosting.handle.deadline import beat, set_deadline
from manyturn.envs.hosting.handle.env_handle import EnvError
from manyturn.envs.hosting.handle.env_spec_message import heed, take_streams
from manyturn.envs.hosting.handle.messages import decode, encode


def _failure(error: BaseException) -> dict[str, str]:
    """An error as plain values; one that was not raised here is given with its place."""
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    if frame.f_globals.get("__name__", "").startswith("manyturn."):
        return {"module": type(error).__module__, "name": type(error).__qualname__, "text": str(error)}
    message = traceback.format_exception_only(error)[-1].strip()
    text = f"{Path(frame.f_code.co_filename).name}, line {line}, raised {message}: fix the file"
    return {"module": EnvError.__module__, "name": EnvError.__qualname__, "text": text}


def main() -> None:
    """Do the work."""
    requests, answers = take_streams()
    message = decode(requests.readline())

    def send(**fields: Any) -> None:
        answers.write(encode(fields))
        answers.flush()

    heed(message)
    module, name = message["work"]
    try:
        load_plugins()
        work = getattr(importlib.import_module(module), name)
        set_deadline(message["timeout"], lambda seconds: send(within=seconds))  # imports are not the environment's
        for value in work(*message["args"]):
            send(value=value)
            beat()
        atexit._run_exitfuncs()  # what environments share, such as a browser, ends in order
        send(done=True)
    except (Exception, SystemExit) as error:
        send(error=_failure(error))
    os._exit(0)  # threads of an environment do not hold it up


if __name__ == "__main__":
    main()
