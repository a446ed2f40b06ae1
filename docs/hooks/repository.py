"""README as the first page, and every file of the repository that a page links to: results, pictures, sources."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<=\]\()(?![\w+]+:|#)([^)\s#]+)")
MARK = re.compile(r"^<!-- (?:not run: .*|run by .*|figures vary|starts in an empty folder) -->\n", re.MULTILINE)
FOLDER = "repository"


def at(path: str) -> str:
    """Path of a repository's file on the site, both paths from the root.

    >>> at("docs/training.md"), at("README.md"), at("benchmarks/results/rate_grid.md")
    ('training.md', 'index.md', 'repository/benchmarks/results/rate_grid.md')
    """
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{FOLDER}/{path}"


def target(link: str, source: str) -> str:
    """The file of the repository that a link means, on the page ``source``; a folder's is its README."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return f"{path}/README.md" if (ROOT / path / "README.md").is_file() else path


def relinked(text: str, source: str) -> str:
    """A page's text, with links that lead from its place on the site, and without marks for CI."""
    here = posixpath.dirname(at(source))
    return LINK.sub(lambda link: posixpath.relpath(at(target(link[1], source)), here or "."), MARK.sub("", text))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README and what pages link to; what a linked page links to comes along."""
    waiting = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    linked = set(waiting)
    while waiting:
        source = waiting.pop()
        if not source.endswith(".md"):
            file = File.generated(config, at(source), abs_src_path=str(ROOT / source))
        else:
            text = (ROOT / source).read_text(encoding="utf-8")
            links = {target(link, source) for link in LINK.findall(text)}
            new_links = {link for link in links if (ROOT / link).is_file() and link not in linked}
            linked |= new_links
            waiting += new_links
            file = File.generated(config, at(source), content=relinked(text, source))
        if not source.startswith("docs/"):
            file.inclusion = InclusionLevel.NOT_IN_NAV if source != "README.md" else InclusionLevel.INCLUDED
            files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The pages of docs/ link to the repository as they do on disk."""
    if page.file.src_uri == "errors.md":  # it names many options and explains none: their own pages come first
        page.meta["search"] = {"boost": 0.2}
    return markdown if page.file.generated_by else relinked(markdown, f"docs/{page.file.src_uri}")
