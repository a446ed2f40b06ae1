"""For readers that are programs: ``llms.txt`` lists all pages, and each page is there as Markdown next to itself."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

_TEXTS: dict[str, tuple[str, str]] = {}  # path of a page: its title and its text


def on_page_content(html: str, page: Page, **_: object) -> str:
    _TEXTS[page.file.src_uri] = (str(page.title), page.markdown or "")
    return html


def on_post_build(config: MkDocsConfig) -> None:
    folder = Path(config.site_dir)
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for path, (title, text) in sorted(_TEXTS.items()):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
        lines.append(f"- [{title}]({path})")
    (folder / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
