"""Makes a file of software tasks and its card: searches, keeps what was verified, says what it is."""

from collections.abc import Callable, Sequence
from pathlib import Path

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.mutation.fault_search import search
from manyturn.envs.software.mutation.search_checkpoint import FaultTrial, Journal
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.library_sources import MEND, missing
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.task_card import card
from manyturn.envs.software.tasks.task_entry import Entry, entry_of


def make(names: Sequence[str], out: Path, count: int, seed: int, tell: Callable[[FaultTrial], None]) -> list[Entry]:
    """Write tasks to ``out``, their card next to it as Markdown, and the journal of the search to ``out``.journal.

    The same command goes on with an interrupted search.

    Args:
        names: of libraries.
        count: tasks in all, as many from each library as it gives.
        tell: is told of each fault that was tried.

    Raises:
        NeedsSetup: the source of a library is missing.
        EngineUnavailable: no container engine answers.
    """
    libraries = [library(name) for name in dict.fromkeys(names)]
    if lacking := missing(libraries):
        raise NeedsSetup(f"the sources of {', '.join(one.name for one in lacking)} are missing: {MEND}")
    if count < len(libraries):
        raise ValueError(f"{count} tasks of {len(libraries)} libraries: ask for at least one of each")
    journal = Journal(out.with_name(out.name + ".journal"), seed)
    tasks_made = search(libraries, count, journal, seed, lambda: DockerSandbox(ContainerEngine()), tell)
    release = _measured(out)
    entries = [entry_of(*task) for task in tasks_made]
    entries = [entry._replace(reached=release.get(entry.id)) for entry in entries]
    tried = [one for one in journal.trials.values() if one.fault.library in {release.name for release in libraries}]
    replace_text(out, lock_file.save(entries))
    replace_text(out.with_suffix(".md"), card(entries, tried, journal.baselines, seed))
    return entries


def _measured(file: Path) -> dict[str, float | None]:
    """Measurements of the tasks of an earlier file: id -> what is reached."""
    try:
        return {entry.id: entry.reached for entry in lock_file.load(file).entries}
    except (OSError, ValueError):  # there is none, or it is of another release
        return {}
