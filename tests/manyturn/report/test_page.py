"""The page as a file: nothing runs but its own script, nothing is loaded, and the data comes back as they went in."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from manyturn.report.page import SCRIPTS, live_page, static_page

pytestmark = pytest.mark.versions

ASSETS = files("manyturn.report") / "assets"


class Elements(HTMLParser):
    """All elements of a page with their attributes and text."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        self.inside = True

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1][2].append(data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, "".join(text)) for name, attributes, text in self.found if name == tag]


def policy(page: str) -> dict[str, str]:
    [content] = [a["content"] for a, _ in Elements(page).of("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    return dict(part.strip().split(" ", 1) for part in content.split(";"))


def pages() -> dict[str, str]:
    return {"static": static_page({"title": "</script>"}, [[{"last": "<!--"}]]), "live": live_page()}


@pytest.mark.parametrize("kind", ["static", "live"])
def test_only_the_pages_own_script_and_style_are_admitted(kind):
    page = pages()[kind]
    scripts = [text for attributes, text in Elements(page).of("script") if "type" not in attributes]
    [[_, style]] = Elements(page).of("style")
    rules = policy(page)
    for text, rule in ((*scripts, "script-src"), (style, "style-src")):
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["connect-src"] == {"static": "'none'", "live": "'self'"}[kind]


@pytest.mark.parametrize("kind", ["static", "live"])
def test_markup_has_no_handlers_styles_or_addresses_elsewhere(kind):
    for tag, attributes, _ in Elements(pages()[kind]).found:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc")], tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_read_text_as_markup_or_code(name):
    """Each of these turns text into something that runs or loads."""
    source = (ASSETS / name).read_text(encoding="utf-8")
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|srcdoc|DOMParser|createContextualFragment|document\.write|"
        r"\beval\b|\bFunction\(|import\(|setTimeout\(\s*[\"'`]|cssText|setAttribute\(\s*[\"']style|\bstyle:|"
        r"\.style\.(?!setProperty)|localStorage|XMLHttpRequest|WebSocket|https?://(?!www\.w3\.org/2000/svg\")"
    )
    assert re.findall(forbidden, source) == []
    assert len(source.splitlines()) < 300


def test_every_script_of_the_folder_is_in_the_page():
    assert sorted(SCRIPTS) == sorted(path.name for path in ASSETS.iterdir() if path.name.endswith(".js"))


def test_data_come_back_as_they_went_in():
    document = {"title": "</script><!--\u2028\ud800\x00", "number": 0.1}
    chunks = [[{"last": "a"}, {"last": "</SCRIPT>"}], [{"last": "$script"}]]
    data = {a["id"]: text for a, text in Elements(static_page(document, iter(chunks))).of("script") if "id" in a}
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]+", text) for text in data.values())
    unpacked = {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in data.items()}
    assert unpacked == {"document": document, "chunk-0": chunks[0], "chunk-1": chunks[1]}


def test_the_same_report_is_the_same_file():
    assert static_page({"title": "a"}, [[]]) == static_page({"title": "a"}, [[]])


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_unknown_numbers_are_refused_where_a_browser_could_not_read_them(number):
    with pytest.raises(ValueError, match=r"chunk-0 of the report.*unknown numbers are None"):
        static_page({}, [[{"rewards": [number]}]])


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_on_every_ground(scheme):
    block = re.findall(r":root \{(.*?)\}", (ASSETS / "style.css").read_text(encoding="utf-8"), re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    inks = ("ink", "soft", "accent", "plus", "minus", "good", "bad", "warn")
    pairs = [(ink, ground) for ink in inks for ground in ("ground", "panel")]
    pairs += [
        ("warn", "warn-ground"),
        ("bad", "bad-ground"),
        ("ink", "mark"),
        ("ink", "chosen"),
        ("soft", "chosen"),
        ("ink", "hover"),
    ]
    for ink, ground in pairs:
        darker, lighter = sorted((luminance(colours[ink]), luminance(colours[ground])))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (ink, ground)
