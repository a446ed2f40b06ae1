"""What a data folder holds must be told truly: what is missing, what differs, what was prepared."""

import json
from pathlib import Path

import pytest

from manyturn.api import webshop_data
from manyturn.cli.app import app
from manyturn.envs.shop.webshop import hash_cache
from manyturn.envs.shop.webshop.hash_cache import facts_of
from manyturn.envs.shop.webshop.official_shop import load
from manyturn.envs.shop.webshop.records import ALL_ATTRIBUTES, ALL_PRODUCTS, ATTRIBUTES, HUMAN, PRODUCTS, DataError

pytestmark = pytest.mark.versions

ABOUT = {"attributes": ["soft"], "instruction": "Find me soft lamps", "instruction_attributes": ["soft"]}


def product(number: int) -> dict:
    return {
        "asin": f"B{number:09}",
        "name": f"Soft lamp {number}",
        "full_description": "",
        "small_description": [],
        "customization_options": {"Size": [{"value": "S"}, {"value": "L"}]},
        "pricing": "$5.00 - $20.00",
        "query": "lamps",
        "product_category": "Home › Lamps",
        "category": "home",
    }


def files(folder: Path, names: tuple[str, str] = (PRODUCTS, ATTRIBUTES)) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / names[0]).write_text(json.dumps([product(number) for number in range(30)]))
    (folder / names[1]).write_text(json.dumps({f"B{number:09}": ABOUT for number in range(30)}))
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "webshop"


def command(*words: object) -> int:
    """Exit code of ``manyturn data webshop``."""
    try:
        app(["data", "webshop", *map(str, words)], print_error=False, exit_on_error=False)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_files_that_are_not_the_public_ones_fail_until_they_are_accepted(tmp_path: Path, capsys) -> None:
    folder = files(tmp_path / "data")
    assert command(folder) == 1
    printed = capsys.readouterr().out
    assert printed.count("differs from the copy in github.com/WooooDyy/AgentGym") == 2 and "--accept" in printed
    assert command(folder, "--accept") == 0
    printed = capsys.readouterr().out
    assert f"{HUMAN}: missing" in printed and "30 products, synthetic goals: 60 (train" in printed
    assert command(folder) == 0 and capsys.readouterr().out.count("as recorded") == 2


def test_the_public_files_are_known_by_what_they_hold(tmp_path: Path, monkeypatch, capsys) -> None:
    folder = files(tmp_path / "data")
    known = {name: facts_of(folder / name).git for name in (PRODUCTS, ATTRIBUTES)}
    monkeypatch.setattr(webshop_data, "KNOWN", hash_cache.KNOWN | known)
    assert command(folder) == 0 and capsys.readouterr().out.count("as in github.com/WooooDyy/AgentGym") == 2


def test_a_files_git_name_is_gits(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert facts_of(tmp_path / "empty").git == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_file_that_changed_since_it_was_recorded_fails(tmp_path: Path, capsys) -> None:
    folder = files(tmp_path / "data")
    assert command(folder, "--accept") == 0
    before = facts_of(folder / ATTRIBUTES).sha256
    (folder / ATTRIBUTES).write_text(json.dumps({f"B{number:09}": ABOUT for number in range(29)}))
    capsys.readouterr()
    assert command(folder) == 1
    assert f"{facts_of(folder / ATTRIBUTES).sha256}, differs from the recorded {before}" in capsys.readouterr().out
    assert command(folder) == 1 and command(folder, "--accept") == 0 and command(folder) == 0


def test_all_products_are_prepared_once_and_then_found(tmp_path: Path, cache: Path, capsys) -> None:
    folder = files(tmp_path / "data", (ALL_PRODUCTS, ALL_ATTRIBUTES))
    assert command(folder) == 0
    printed = capsys.readouterr().out
    assert printed.count("recorded now") == 2 and printed.count("prepared, ") == 2 and "goals: 60" in printed
    assert len(load(folder, "synthetic").goals) == 60
    made = {path: path.stat().st_mtime_ns for path in cache.rglob("*.npy")}
    assert command(folder) == 0 and capsys.readouterr().out.count("there already") == 2
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.npy")} == made
    assert command(folder, "--original", 7) == 0 and len(load(folder, "synthetic", 7).goals) == 60
    assert "there already" in capsys.readouterr().out


def test_a_record_that_cannot_be_read_is_made_anew(tmp_path: Path, cache: Path) -> None:
    folder = files(tmp_path / "data", (ALL_PRODUCTS, ALL_ATTRIBUTES))
    assert command(folder) == 0
    [file] = (cache / "manifests").iterdir()
    file.write_text("{")
    with pytest.raises(DataError, match="not prepared yet"):
        hash_cache.recorded_hashes([folder / ALL_PRODUCTS])
    assert command(folder) == 0 and hash_cache.recorded_hashes([folder / ALL_PRODUCTS])


def test_a_folder_without_files_is_told_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"no {PRODUCTS}, {ATTRIBUTES}: .*princeton-nlp/WebShop"):
        command(tmp_path)
    (tmp_path / ALL_PRODUCTS).touch()
    with pytest.raises(DataError, match=rf"no {ALL_ATTRIBUTES}: .*setup.sh -d all"):
        command(tmp_path)
