"""All products on disk must be the same shop as the same products in memory, however preparing them went."""

import io
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.shop.catalogue.catalogue import FOUND, Catalogue
from manyturn.envs.shop.search import posting_lists
from manyturn.envs.shop.search.posting_lists import PostingsBuilder
from manyturn.envs.shop.webshop import file_preparation, json_stream
from manyturn.envs.shop.webshop.goal_tasks import tasks_of
from manyturn.envs.shop.webshop.hash_cache import cache_folder, facts_of, record
from manyturn.envs.shop.webshop.json_stream import array_items, object_items
from manyturn.envs.shop.webshop.official_shop import OfficialShop, load
from manyturn.envs.shop.webshop.records import (
    ALL_ATTRIBUTES,
    ALL_PRODUCTS,
    ATTRIBUTES,
    HUMAN,
    PRODUCTS,
    DataError,
    files_of,
)
from manyturn.envs.shop.webshop_env import WebShop

TEXT = st.text('ab"\\[]{},: é★\n\ud800', max_size=12)
VALUES = st.one_of(TEXT, st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.lists(TEXT)), max_size=4))
INDENTS = st.sampled_from([None, 1])
DEEP = "[" * 100_000 + "]" * 100_000
COUNTS = st.lists(st.dictionaries(st.sampled_from("abcdé★"), st.integers(1, 9)), max_size=12)


def as_full(folder: Path, target: Path) -> Path:
    """The files of a folder under the names of the files of all products."""
    target.mkdir(parents=True, exist_ok=True)
    for name, new in ((PRODUCTS, ALL_PRODUCTS), (ATTRIBUTES, ALL_ATTRIBUTES), (HUMAN, HUMAN)):
        (target / new).write_bytes((folder / name).read_bytes())
    return target


def recorded_files(folder: Path, kind: str) -> tuple[tuple[Path, ...], list[str]]:
    """The files and their hashes, which have been recorded."""
    files = files_of(folder, kind)
    facts = {file.name: facts_of(file) for file in files}
    record(files[0].parent, facts)
    return files, [facts[file.name].sha256 for file in files]


def prepare(folder: Path, kind: str, original: int | None = None) -> None:
    file_preparation.prepare(*recorded_files(folder, kind), kind, original)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    return cache_folder()


@pytest.fixture(scope="module")
def big(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> OfficialShop:
    """The catalogue behind the recordings, prepared as if it were the set of all products."""
    folder = tmp_path_factory.mktemp("big")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MANYTURN_CACHE", str(folder / "cache"))
        patch.setattr(posting_lists, "_BLOCK", 10_000)  # so that there are several
        prepare(as_full(recorded, folder / "data"), "synthetic")
        return load(folder / "data", "synthetic")


def test_a_search_on_disk_equals_one_in_memory_to_the_bit(big: OfficialShop, golden) -> None:
    memory = Catalogue(tuple(big.catalogue.products))
    queries = [case["query"] for case in golden("webshop_lucene_search")["queries"]]
    browsing = ["<r>", "<r> 2", "<c> beauty", "<c> no", "<a> high quality", "<a>", "<q> shampoo & conditioner"]
    for query in (*queries, *browsing, "", "nothingatall", "\ud800"):
        found = big.catalogue.search(query)
        assert [p.id for p in found] == [p.id for p in memory.search(query)], query
        assert tuple(found) == tuple(memory.search(query))
        assert big.catalogue.index.search(query, FOUND) == memory.index.search(query, FOUND)
    assert any(big.catalogue.search(query) for query in queries)


def test_a_product_is_found_by_id_and_among_results(big: OfficialShop) -> None:
    catalogue = big.catalogue
    assert all(catalogue[product.id] is product for product in map(catalogue.products.__getitem__, range(20)))
    for name in ("", "B", "ZZZZZZZZZZ", "\ud800"):
        with pytest.raises(KeyError):
            catalogue[name]
    found, other = catalogue.search("<c> beauty"), catalogue.search("<c> electronics")
    for place, product in enumerate(found):
        assert product in found and found.index(product) == place and product not in other
    with pytest.raises(ValueError, match="not found"):
        other.index(found[0])


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("original", [None, 7])
def test_goals_on_disk_are_those_in_memory(kind: str, original: int | None, small: Path, tmp_path: Path, cache) -> None:
    folder = as_full(small, tmp_path / "data")
    prepare(folder, kind, original)
    disk, memory = load(folder, kind, original), load(small, kind, original)
    assert tuple(disk.catalogue.products) == tuple(memory.catalogue.products)
    assert tuple(disk.goals) == tuple(memory.goals) and disk.goals[3:5] == list(memory.goals[3:5])
    ours, theirs = tasks_of(disk, kind, original), tasks_of(memory, kind, original)
    assert list(ours) == list(theirs)
    for split, tasks in ours.items():
        assert [task.id for task in tasks] == [task.id for task in theirs[split]]
        assert all(tasks.find(task.id) == task for task in tasks)
        assert tasks.find(f"{split}/{kind}/1000000") is None


def test_the_conformance_check_passes_on_disk(small: Path, tmp_path: Path, cache: Path) -> None:
    folder = as_full(small, tmp_path / "data")
    prepare(folder, "synthetic")
    report = check("manyturn/WebShop-v0", {"data": str(folder)}, samples=4)
    assert report.passed, str(report)
    env = WebShop("test", folder)
    for task in env.tasks("test"):
        env.reset(seed=0, options={"task": task})
        ended = False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(env.expert())
            ended = terminated or truncated
        assert reward == 1.0, task.id


def test_what_is_not_prepared_or_has_changed_names_the_command(shop_of, tmp_path: Path, cache: Path) -> None:
    folder = as_full(shop_of({"name": "A lamp that no other test has"}), tmp_path / "data")
    command = f'run "manyturn data webshop {folder}'
    with pytest.raises(DataError, match="is not prepared yet") as caught:
        load(folder, "synthetic")
    assert command in str(caught.value)
    prepare(folder, "synthetic")
    assert load(folder, "synthetic").goals
    with pytest.raises(DataError, match=rf"{HUMAN} is not prepared yet"):
        load(folder, "human")
    with pytest.raises(DataError, match="--original 7"):
        load(folder, "synthetic", 7)
    with (folder / ALL_PRODUCTS).open("a") as file:
        file.write(" ")
    with pytest.raises(DataError, match="has changed since"):
        load(folder, "synthetic")
    (folder / PRODUCTS).touch()
    with pytest.raises(DataError, match="into its own folder"):
        load(folder, "synthetic")


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        (ALL_PRODUCTS, lambda text: text[:-100]),
        (ALL_PRODUCTS, lambda text: f'[{{"asin": {DEEP}}}]'),
        (ALL_ATTRIBUTES, lambda text: text[:-100]),
        (ALL_ATTRIBUTES, lambda text: f'{{"B000000000": {DEEP}}}'),
        (HUMAN, lambda text: "[]"),
    ],
)
def test_preparing_that_fails_leaves_nothing_and_can_be_repeated(
    name: str, edit: Callable[[str], str], small: Path, tmp_path: Path, cache: Path
) -> None:
    folder = as_full(small, tmp_path / "data")
    whole = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_text(edit(whole), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name} is not as WebShop's files are"):
        prepare(folder, "human")
    assert not list(cache.glob(".*")) and not list(cache.glob("goals-*"))
    (folder / name).write_text(whole, encoding="utf-8")
    prepare(folder, "human")
    assert len(load(folder, "human").goals) == 24


def test_leftovers_of_a_killed_process_are_cleared_and_two_at_once_make_one(
    small: Path, tmp_path: Path, cache: Path
) -> None:
    folder = as_full(small, tmp_path / "data")
    (cache / ".products-1.writing" / "catalogue").mkdir(parents=True)
    files, hashes = recorded_files(folder, "synthetic")
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda _: file_preparation.prepare(files, hashes, "synthetic", None), range(3)))
    assert made[0] == made[1] == made[2]
    assert sorted(path.name.partition("-")[0] for path in cache.iterdir()) == ["goals", "lock", "manifests", "products"]
    assert len(load(folder, "synthetic").goals) == 24 * 6


@pytest.mark.parametrize("what", ["products", "goals"])
def test_what_was_prepared_and_is_damaged_names_the_folder_and_the_mend(
    what: str, small: Path, tmp_path: Path, cache: Path
) -> None:
    folder = as_full(small, tmp_path / "data")
    files, hashes = recorded_files(folder, "synthetic")
    file_preparation.prepare(files, hashes, "synthetic", None)
    [damaged] = cache.glob(f"{what}-*")
    told = rf'{damaged} is damaged .*: remove the folder and run "manyturn data webshop {folder}" again'
    for file in sorted(path for path in damaged.rglob("*") if path.stem not in ("low", "high") and path.is_file()):
        whole = file.read_bytes()
        for cut in {whole[:-1], b""} - {whole}:
            file.write_bytes(cut)
            with pytest.raises(DataError, match=told) as caught:
                file_preparation.opened(files, hashes, "synthetic", None)
            assert "\n" not in str(caught.value)
            with pytest.raises(DataError, match=told):
                file_preparation.prepare(files, hashes, "synthetic", None)
        file.write_bytes(whole)
    shutil.rmtree(damaged)
    file_preparation.prepare(files, hashes, "synthetic", None)
    assert file_preparation.opened(files, hashes, "synthetic", None)[1]


def test_goals_are_not_made_of_damaged_products(small: Path, tmp_path: Path, cache: Path) -> None:
    files, hashes = recorded_files(as_full(small, tmp_path / "data"), "synthetic")
    file_preparation.prepare(files, hashes, "synthetic", None)
    [products] = cache.glob("products-*")
    for name in ("products.jsonl", "low.npy"):
        whole = (products / name).read_bytes()
        (products / name).write_bytes(whole[:-1])
        with pytest.raises(DataError, match=f"{products} is damaged .* --original 7"):
            file_preparation.prepare(files, hashes, "synthetic", 7)
        (products / name).write_bytes(whole)
    file_preparation.prepare(files, hashes, "synthetic", 7)


def test_the_rest_behind_a_fault_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_READ", 16)
    monkeypatch.setattr(json_stream, "_LONGEST", 64)
    stream = io.BytesIO(b'[{"asin": oops}, ' + b'{"asin": "B1"}, ' * 10_000 + b"]")
    reader = json_stream._Reader(stream)
    reader.enter("[")
    with pytest.raises(ValueError):
        reader.value()
    assert stream.tell() <= 4 * 64


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=6), st.integers(1, 20), st.booleans(), st.data())
def test_a_stream_reads_what_was_written_and_notices_a_cut(
    tmp_path_factory, values: list, size: int, ascii_only: bool, data: st.DataObject
) -> None:
    file = tmp_path_factory.getbasetemp() / "stream.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_READ", size)
        for content, read in ((values, array_items), (dict(enumerate(values)), lambda f: dict(object_items(f)))):
            text = json.dumps(content, ensure_ascii=ascii_only or "ud800" in ascii(values), indent=data.draw(INDENTS))
            file.write_text(text, encoding="utf-8")
            expected = json.loads(text)
            assert (list(read(file)) if isinstance(expected, list) else read(file)) == expected
            whole = text.encode()
            file.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
            with pytest.raises(ValueError):
                list(read(file))


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.integers(1, 10), st.booleans())
def test_postings_list_every_number_once_in_order(tmp_path_factory, counts: list, block: int, on_disk: bool) -> None:
    folder = tmp_path_factory.mktemp("postings") / "made" if on_disk and any(counts) else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posting_lists, "_BLOCK", block)
        gatherer = PostingsBuilder(folder)
        for number, found in enumerate(counts):
            gatherer.add(number, found)
        made = gatherer.finish()
    if folder:
        del made
        made = posting_lists.opened(folder)
    for key in "abcdé★x":
        having = [(number, found[key]) for number, found in enumerate(counts) if key in found]
        assert made.of(key).tolist() == [number for number, _ in having]
        place = made.places.get(key)
        assert (place is None) == (not having)
        if place is not None:
            assert np.array_equal(made.weights[made.span(place)], [count for _, count in having])
