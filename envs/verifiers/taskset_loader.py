"""Packages that name a taskset of verifiers, and the reasons why a taskset cannot be played here.

A name is that of an installed distribution that asks for verifiers itself: no other module is imported, and nothing is
fetched. Source: the package verifiers 0.4.0, ``verifiers.v1.utils.loaders`` and ``verifiers.v1.task``.
"""

import inspect
import re
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any, Literal, get_args, get_origin

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from pydantic import ValidationError
from verifiers.v1.configs.agent import agent_config_fields  # pyright: ignore[reportMissingImports]
from verifiers.v1.session import hook_boundary  # pyright: ignore[reportMissingImports]
from verifiers.v1.utils.decorators import discover_decorated  # pyright: ignore[reportMissingImports]
from verifiers.v1.utils.loaders import (  # pyright: ignore[reportMissingImports]
    import_taskset,
    load_environment,
    resolve_env_config,
    taskset_class,
    taskset_config_type,
)

from manyturn.envs.contract.registration.env_registry import NeedsSetup, UnknownEnv
from manyturn.envs.contract.tasks.task import SPLITS

KNOWN = "0.4."  # versions whose interface this speaks
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_REQUIRES_VERIFIERS = re.compile(r"verifiers(?![\w.-])", re.I)
_OF_VERIFIERS = {
    "harbor": "play a folder of tasks as harbor:DIR",
    "nemo_gym": "serve its environment by verifiers itself",
    "openenv": "play the server as openenv:URL",
    "textarena": "play a game as textarena:NAME",
}


def installed_version(package: str) -> str:
    """Version of the distribution that a name means. Raises NeedsSetup or UnknownEnv, with what to do."""
    if not (installed := version("verifiers")).startswith(KNOWN):
        raise NeedsSetup(
            f"verifiers {installed} is installed, and {KNOWN}x is spoken: pip install 'manyturn[verifiers]'"
        )
    module = _module_of(package)
    if module in _OF_VERIFIERS:
        raise UnknownEnv(f"verifiers:{package} is verifiers' own bridge to others: {_OF_VERIFIERS[module]}")
    if not _NAME.fullmatch(package) or "." in package:
        raise UnknownEnv(
            f"verifiers:{package[:100]} names no package: write a name as pip installs it, without version"
        )
    try:
        dist = distribution(package)
    except PackageNotFoundError:
        raise NeedsSetup(f"no package {package} is installed: pip install {package}; nothing is fetched here") from None
    if not any(_REQUIRES_VERIFIERS.match(one) for one in dist.requires or ()):
        raise UnknownEnv(f"the package {package} does not ask for verifiers, so it is no taskset of verifiers")
    return dist.version


def splits_of(package: str, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Our splits of a package's tasks -> what its taskset's configuration is then given besides.

    A taskset whose configuration lists choices of ``split`` has those of them that are splits here.
    """
    _check_exported(package)
    field = taskset_config_type(package).model_fields.get("split")
    if field is None:
        return {SPLITS[0]: {}}
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal and "split" not in given else ()
    if splits := [split for split in SPLITS if split in choices]:
        return {split: {"split": split} for split in splits}
    value = given.get("split", field.default)
    return {value if value in SPLITS else SPLITS[0]: {}}


def _module_of(package: str) -> str:
    return package.replace("-", "_").lower()


def _check_exported(package: str) -> None:
    try:
        import_taskset(package)
    except ModuleNotFoundError as error:
        missing = getattr(error.__cause__, "name", None)
        if missing == _module_of(package):
            raise UnknownEnv(f"the package {package} has no module {missing}, where verifiers would look") from None
        raise NeedsSetup(f"the package {package} imports {missing}, which is missing: install it too") from None
    try:
        taskset_class(package)
    except (AttributeError, TypeError, ValueError) as error:
        raise UnknownEnv(f"{error} Packages made for verifiers before 0.4 have none") from None


def environment(package: str, taskset: dict[str, Any], options: dict[str, Any]) -> Any:
    """The environment of a package, which plays its taskset. Raises ValueError for wrong options, UnknownEnv."""
    try:
        env = load_environment(resolve_env_config({**options, "taskset": {**taskset, "id": package}}))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{package} refuses {'.'.join(map(str, fault['loc']))[:100]}: {fault['msg']}") from None
    if why := _refusal(env):
        raise UnknownEnv(f"verifiers:{package} is not played: {why}")
    return env


def _refusal(env: Any) -> str | None:
    """The reason for which an environment cannot be played by one agent that answers with text."""
    roles = list(agent_config_fields(env.config))
    if len(roles) != 1:
        return f"it has the agents {', '.join(roles)}, and one agent plays here"
    kind = type(env.taskset).task_type()
    if kind.NEEDS_CONTAINER:
        return "its tasks need a container of verifiers"
    if kind.toolsets(env.taskset.config.task) or env.taskset.toolsets(env.taskset.config):
        return "its tools are servers of verifiers; an action here is text"
    return None


def task_refusal(task: Any) -> str | None:
    """The reason for which a task cannot be played here."""
    if task.config.judges:
        names = ", ".join(config.id for config in task.config.judges)
        return f"its judges ask a model ({names}): leave them out, with --env.args.taskset.task.judges '[]'"
    if task.data.image is not None:
        return "it is played in an image of its own"
    if discover_decorated(task, "intercept"):
        return "it rewrites what the agent and its tools say (@intercept)"
    needing = [one.__name__ for one in task.hooks("reward") if _needs_runtime(one)]
    if needing:
        return f"its rewards {', '.join(needing)} look into a runtime of verifiers"
    other = [one.__name__ for one in task.hooks("stop") if hook_boundary(one, allow_trace=True) is not vf.Trace]
    return f"its stops {', '.join(other)} look at requests to a model" if other else None


def _needs_runtime(function: Any) -> bool:
    parameter = inspect.signature(function).parameters.get("runtime")
    return parameter is not None and parameter.default is inspect.Parameter.empty
