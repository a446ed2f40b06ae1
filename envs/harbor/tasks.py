"""A task folder as one or several steps, each with an instruction, tests, and perhaps a solution."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.harbor.dockerfile import Laid, laid
from manyturn.envs.harbor.folder import SETTINGS, Files, below, read_files, text_of
from manyturn.envs.harbor.settings import StepSettings, TaskSettings, read_settings, thresholds

_DOCKERFILE = "environment/Dockerfile"
# What would change an episode, and is not done here.
_UNPLAYED = ("environment/docker-compose.yaml", "environment/docker-compose.yml", "environment/.dockerignore")
_UNREAD = ("trajectory.json", ".harborignore")


class Step(NamedTuple):
    """Instruction of the task.

    Attributes:
        name: "" where a task has no steps.
        instruction: what it is asked for.
        tests: below ``/tests`` while they run, and never before.
        solution: below ``/solution`` for an expert; empty if there is none.
        staged: laid into the working folder when the step begins; ``setup.sh`` among them is run then.
        least: key of a reward -> what it must reach for the next step to begin.
        seconds: for the tests.
        environ: variables of the tests.
    """

    name: str
    instruction: str
    tests: Files
    solution: Files
    staged: Files
    least: Mapping[str, float]
    seconds: float
    environ: Mapping[str, str]


class Folder(NamedTuple):
    """A task.

    Attributes:
        content: hash of all files.
        laid: image, working folder, and what is laid into the image.
        steps: at least one.
        is_mean: the reward is the mean over the steps that were played; else that of the last of them.
        solving: variables of solutions.
    """

    content: str
    laid: Laid
    steps: tuple[Step, ...]
    is_mean: bool
    solving: Mapping[str, str]


def read_task(path: Path, offline: bool, image: str | None) -> Folder:
    """Read a task folder. Raises NeedsSetup, with the folder's name, for what cannot be played.

    Args:
        offline: play a task that asks for a network without one.
        image: in place of the folder's own; ``{task}`` stands for the folder's name.
    """
    try:
        return _read(read_files(path), offline, image and image.replace("{task}", path.resolve().name))
    except NeedsSetup as error:
        raise NeedsSetup(f"{path}: {error}") from None


def _read(files: Files, offline: bool, image: str | None) -> Folder:
    settings = read_settings(text_of(files, SETTINGS), offline)
    for name in _UNPLAYED:
        if name in files:
            raise NeedsSetup(f"{name} is there: a task is played in one container, whose image is named")
    if odd := next((path for path in files if path.rpartition("/")[2] in _UNREAD), None):
        raise NeedsSetup(f"{odd} is there, and is not heeded here")
    plain = StepSettings(name="step", verifier=settings.verifier)
    if settings.steps:
        steps = tuple(_step(files, settings, step, f"steps/{step.name}/") for step in settings.steps)
    else:
        steps = (_step(files, settings, plain, "")._replace(name=""),)
    if len({step.name for step in steps}) < len(steps):
        raise NeedsSetup("task.toml: two steps have one name")
    content = digest({path: [sha256(file.content).hexdigest(), file.executable] for path, file in files.items()})
    task_image = _laid(files, settings, image)
    return Folder(content, task_image, steps, settings.multi_step_reward_strategy == "mean", settings.solution.env)


def _laid(files: Files, settings: TaskSettings, image: str | None) -> Laid:
    """Image and files; an image that is named stands for all of a Dockerfile."""
    place = settings.environment
    if (image := image or place.docker_image) is not None:
        return Laid(image, place.workdir or "", place.env, {})
    if _DOCKERFILE not in files:
        raise NeedsSetup(f"there is neither {_DOCKERFILE} nor environment.docker_image in task.toml: name an image")
    recipe = laid(text_of(files, _DOCKERFILE), below(files, "environment"))
    return recipe._replace(workdir=place.workdir or recipe.workdir, environ={**recipe.environ, **place.env})


def _step(files: Files, settings: TaskSettings, step: StepSettings, start: str) -> Step:
    """A step; tests and solutions of the task are shared by all steps that have none."""
    own = below(files, f"{start}tests")
    tests = {**below(files, "tests"), **own}
    if "test.sh" not in tests:
        raise NeedsSetup(f"there is no {start}tests/test.sh")
    verifier = step.verifier
    seconds = verifier.timeout_sec if "timeout_sec" in verifier.model_fields_set else settings.verifier.timeout_sec
    return Step(
        step.name,
        _without_canary(text_of(files, f"{start}instruction.md")),
        tests,
        _solution(files, f"{start}solution") or _solution(files, "solution"),
        below(files, f"{start}workdir") if start else {},
        thresholds(step),
        seconds,
        {**settings.verifier.env, **verifier.env},
    )


def _solution(files: Files, folder: str) -> Files:
    inner = below(files, folder)
    return inner if "solve.sh" in inner else {}


def _without_canary(text: str) -> str:
    """An instruction without the lines at its top that mark benchmarks for those who collect texts."""
    lines = text.split("\n")
    while lines and (
        not lines[0].strip() or (lines[0].lstrip().startswith(("#", "<!--")) and "canary" in lines[0].lower())
    ):
        del lines[0]
    return "\n".join(lines).strip()
