"""Pages that are made from the code when the site is built: environments, methods, metrics, commands, exits, API."""

from collections.abc import Iterator
from typing import Any

import gymnasium
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import manyturn as mt
from manyturn.cli.app import app
from manyturn.cli.pages import method_pages
from manyturn.cli.pages.env_pages import page as environment_page
from manyturn.envs.contract.registration.env_registry import env_ids
from manyturn.recipes import file_of, names
from manyturn.terminal import command_exit
from manyturn.trainers.record.metrics import METRICS


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [
        head,
        ("---",) * len(head),
        *([cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def method_page(name: str) -> str:
    """Output of ``manyturn recipes NAME``, in Markdown."""
    head = method_pages.RecipeHead.of(name)
    parts = [f"# {name}", head.about, head.paper and f"Paper: {head.paper}.", head.notes]
    for piece in method_pages.pieces(name):
        parts += [f"## {piece.place} {piece.name}".rstrip(), f"```text\n{piece.text}\n```"]
        rows = [(f"`{one.name}`", f"`{one.value}`", f"`{one.default}`", one.about) for one in piece.options]
        parts += [table(("option", "here", "default", "what it is"), rows)] if rows else []
    parts += ["## Metrics that show whether it works"]
    parts += [table(("metric", "meaning"), [(f"`{key}`", METRICS[key]) for key in method_pages.telling_metrics(name)])]
    parts += ["## The recipe", f"```toml\n{file_of(name).read_text(encoding='utf-8').strip()}\n```"]
    return "\n\n".join(filter(None, parts)) + "\n"


def metrics_page() -> str:
    """Every key of metrics.jsonl."""
    return "# Metrics\n\nThe keys of `metrics.jsonl`.\n\n" + table(
        ("key", "meaning"), [(f"`{key}`", meaning) for key, meaning in METRICS.items()]
    )


def exits_page() -> str:
    """Meaning of each exit code."""
    codes, _, debug = command_exit.HELP.removeprefix("Exit codes: ").partition(". ")
    lines = [f"- **{code}** {meaning}" for code, _, meaning in (one.partition(" ") for one in codes.split("; "))]
    return "# Exit codes\n\n" + "\n".join(lines) + f"\n\n{debug}\n"


def api_page() -> str:
    """The public names of ``manyturn``, as mkdocstrings finds them, and the library of credit."""
    objects = [getattr(mt, name) for name in mt.__all__ if name not in ("__version__", "credit")]
    named = [f"::: {one.__module__}.{one.__qualname__}" for one in objects]
    return "\n\n".join(["# Python names", *named, "::: manyturn.credit"]) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of every generated page."""
    for name in env_ids():
        if name in gymnasium.registry and name.startswith("manyturn/"):
            yield f"reference/environments/{name.removeprefix('manyturn/')}.md", environment_page(name)
    for name in names():
        yield f"reference/methods/{name}.md", method_page(name)
    yield "reference/metrics.md", metrics_page()
    yield "reference/exit-codes.md", exits_page()
    yield "reference/commands.md", app.generate_docs(output_format="markdown")
    yield "reference/api.md", api_page()


PAGES = dict(pages())


def filled(nav: Any) -> Any:
    """The navigation, with the generated pages of a folder where it says ``FOLDER/*``."""
    if isinstance(nav, dict):
        return {title: filled(below) for title, below in nav.items()}
    if not isinstance(nav, list):
        return nav
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            pages = sorted(path for path in PAGES if path.startswith(entry.removesuffix("*")))
            title = "All environments" if "environments" in entry else "All recipes"
            entries.append({title: [{path.rpartition("/")[2].removesuffix(".md"): path} for path in pages]})
        else:
            entries.append(filled(entry))
    return entries


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = filled(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in PAGES.items():
        files.append(File.generated(config, path, content=text))
    return files
