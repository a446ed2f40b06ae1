"""Commands that make tasks, and that get what they are made of."""

from pathlib import Path

from cyclopts import App

from manyturn.cli.commands.envs import data_app

tasks_app = App(name="tasks", help="Make more tasks than the built-in ones.")


@tasks_app.command(name="software")
def tasks_software(
    *, libraries: str | None = None, out: Path = Path("tasks.jsonl"), count: int = 100, seed: int = 0
) -> None:
    """Put faults into libraries, keep those that the libraries' tests notice reliably, and write them with a card.

    Needs a container engine. Takes about ten seconds a task, and five more to measure whether other inputs than the
    tests' own reach its fault; the same command goes on where it was interrupted.

    Parameters
    ----------
    libraries
        Their names, with commas; default: all.
    out
        The file. Its card is written next to it as Markdown, the journal of the search as FILE.journal.
    count
        Tasks in all, as many from each library as it gives.
    seed
        Decides which faults are tried.
    """
    from manyturn.envs.software.source.libraries import LIBRARIES
    from manyturn.envs.software.tasks.task_file_builder import make

    names = libraries.split(",") if libraries else list(LIBRARIES)
    entries = make(names, out, count, seed, lambda trial: print(f"{trial.fault.id}: {trial.verdict.reason}"))
    print(f"{len(entries)} tasks: {out}, {out.with_suffix('.md')}")
    tasks_reach(out)


@tasks_app.command(name="reach")
def tasks_reach(file: Path, *, jobs: int = 1) -> None:
    """Measure of which tasks of a file other inputs than their tests' own reach the fault, and write it there.

    Needs a container engine and the libraries' sources. Tasks that were measured before are not measured again. Those
    at 0 are passed by whoever knows the visible tests by heart: training leaves them out.

    Parameters
    ----------
    file
        From manyturn tasks software.
    jobs
        Containers side by side.
    """
    from manyturn.envs.software.tasks.fault_reachability import fill
    from manyturn.envs.software.tasks.task_card import recount

    entries = fill(
        file, jobs, lambda name, share: print(f"{name}: {'too slow' if share is None else share}", flush=True)
    )
    recount(file, entries)
    shares = [entry.reached for entry in entries]
    late = f", and {shares.count(None)} were not measured: run this again" if None in shares else ""
    print(f"{file}: the fault of {shares.count(0)} of {len(entries)} tasks is not reached{late}")


@data_app.command(name="software")
def data_software(folder: Path | None = None) -> None:
    """Get the sources that software tasks are made of, pinned by hash: small libraries under permissive licences.

    Parameters
    ----------
    folder
        Where the sdists are already. Default: pip downloads those that are missing, from the index that it is
        configured for, and asks their build systems for metadata, as in any installation from source.
    """
    from manyturn.envs.software.source import library_sources
    from manyturn.envs.software.source.libraries import LIBRARIES

    for library in LIBRARIES.values():
        if lacking := library_sources.missing([library]):
            library_sources.download(lacking) if folder is None else library_sources.take(lacking, folder)
        files = library_sources.tree(library)
        size = sum(map(len, files.values())) / 1e3
        print(f"{library.pin}: {library.licence}, {len(files)} files, {size:,.0f} kB", flush=True)
