"""Options of commands that play in an environment: which one it is, and the processes that host it."""

from typing import Annotated

from cyclopts import Group, Parameter

from manyturn.terminal.env_args import EnvArgs

TASKS, PLAYING = (  # sections of a long help
    Parameter(group=group) for group in map(Group.create_ordered, ("Environment and tasks", "Playing"))
)
_ARGS = """Arguments of the environment's constructor as a TOML table, such as {difficulty = "hard"}; or one, as in
--env.args.difficulty hard. Default: the run's."""
_WRAPPERS = """Turn-level rewards as a TOML list, such as [{name = "turn_cost", cost = 0.01}]. Default: the run's, or
none."""
_WORKERS = "Processes that host the environment; 0 keeps it in this one."
_TIMEOUT = "Seconds that the environment may take for one answer, with workers. Default: 60."

PlayedEnv = Annotated[str | None, TASKS, Parameter(help="Environment; a run knows its own.")]
PlayedArgs = Annotated[EnvArgs, TASKS, Parameter(help=_ARGS)]
PlayedWrappers = Annotated[str | None, TASKS, Parameter(name=("--env.wrappers", "--wrappers"), help=_WRAPPERS)]
Workers = Annotated[int, PLAYING, Parameter(name=("--env.workers", "--workers"), help=_WORKERS)]
AnswerTimeout = Annotated[float | None, PLAYING, Parameter(name=("--env.timeout", "--timeout"), help=_TIMEOUT)]
