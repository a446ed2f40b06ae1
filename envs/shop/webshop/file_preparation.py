"""All of WebShop's products on disk: prepared once, then opened at once by any number of processes.

Products and goals are JSON lines with arrays of their ends, the index is arrays; processes map them, and so share what
they read. What is prepared lies under the hash of the files that it was made of.
"""

import contextlib
import fcntl
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.envs.contract.atomic_files import clear_leftovers, sync
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import SPLITS
from manyturn.envs.shop.catalogue.catalogue import Catalogue, write_catalogue
from manyturn.envs.shop.catalogue.price_draws import draws_of
from manyturn.envs.shop.catalogue.stored_products import StoredProducts, line_of
from manyturn.envs.shop.search.json_lines import JsonLines, load_array, write_lines
from manyturn.envs.shop.webshop import goal_templates
from manyturn.envs.shop.webshop.goal_templates import Goals, GoalTemplate, Splits
from manyturn.envs.shop.webshop.hash_cache import cache_folder
from manyturn.envs.shop.webshop.json_stream import array_items, object_items
from manyturn.envs.shop.webshop.records import DataError, product_of, table, unreadable, usable

_LAYOUT = 1  # raise it when what is prepared changes
_INSTRUCTION, _ASKED = -2, -1  # places in a product's line


def products_folder(hashes: Sequence[str]) -> Path:
    """Folder of the prepared products, for source files with these hashes."""
    return cache_folder() / f"products-{digest(_LAYOUT, tuple(hashes[:2]))}"


def goals_folder(hashes: Sequence[str], kind: str, original: int | None) -> Path:
    """Folder of the prepared goals, for source files with these hashes."""
    return cache_folder() / f"goals-{digest(_LAYOUT, tuple(hashes), kind, original)}"


def opened(
    files: Sequence[Path], hashes: Sequence[str], kind: str, original: int | None
) -> tuple[Catalogue, Goals, Splits]:
    """Catalogue, goals and splits as they were prepared. Raises DataError if they were not, or no longer are."""
    products, goals = products_folder(hashes), goals_folder(hashes, kind, original)
    if not products.is_dir() or not goals.is_dir():
        raise DataError(f"{kind} goals of {files[0]} are not prepared: run {_command(files, original)} once")
    with _whole(goals, files, original):
        prices, counts, limits, order = (load_array(goals / name) for name in ("prices", "counts", "limits", "order"))
        lines = JsonLines(goals / "wishes")
        splits: Splits = goal_templates.original_splits(len(order))
        if original is None:
            splits = {split: load_array(goals / split) for split in SPLITS}
    with _whole(products, files, original):
        stock = StoredProducts(JsonLines(products / "products"), prices)
        catalogue = Catalogue.opened(products / "catalogue", stock)
    return catalogue, Goals(stock, lines, counts, limits, order), splits


def _command(files: Sequence[Path], original: int | None) -> str:
    option = "" if original is None else f" --original {original}"
    return f'"manyturn data webshop {files[0].parent}{option}"'


@contextlib.contextmanager
def _whole(folder: Path, files: Sequence[Path], original: int | None) -> Iterator[None]:
    """For reading what was prepared of files. Raises DataError if it is damaged."""
    try:
        yield
    except (OSError, EOFError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        mend = f"remove the folder and run {_command(files, original)} again"
        raise DataError(f"{folder} is damaged ({why}): {mend}") from None


def prepare(files: Sequence[Path], hashes: Sequence[str], kind: str, original: int | None) -> list[Path]:
    """Prepare what is not prepared yet; the folders. Raises DataError, also if what is there is damaged.

    See ``official.load``.

    Args:
        files, hashes: products, attributes, and instructions by people for goals of that kind.
    """
    products, goals = products_folder(hashes), goals_folder(hashes, kind, original)
    _once(products, lambda folder: _write_products(folder, files))
    _once(goals, lambda folder: _write_goals(folder, products, files, original))
    opened(files, hashes, kind, original)
    return [products, goals]


def _once(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a folder unless it is there; whole or not at all, and one process at a time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
        clear_leftovers(folder.parent)
        aside = folder.with_name(f".{folder.name}.writing")
        aside.mkdir()
        try:
            write(aside)
            for path in aside.rglob("*"):
                sync(path)
            aside.rename(folder)
        finally:
            clear_leftovers(folder.parent)
        sync(folder.parent)


def _write_products(folder: Path, files: Sequence[Path]) -> None:
    low, high = array("d"), array("d")  # one price, or the ends of a range

    def lines() -> Iterator[list[Any]]:
        about = _attributes(files[1])
        for _, record in usable(array_items(files[0]), files[0]):
            details = json.loads(about.get(record["asin"], b"{}"))
            product, ends = product_of(record, details, files[0])
            low.append(ends[0])
            high.append(ends[1] if len(ends) == 2 else np.nan)
            yield [*line_of(product), *goal_templates.instruction_of(details)]

    write_lines(folder / "products", lines())
    np.save(folder / "low.npy", np.array(low))
    np.save(folder / "high.npy", np.array(high))
    write_catalogue(folder / "catalogue", StoredProducts(JsonLines(folder / "products"), np.array(low)))


def _attributes(file: Path) -> dict[str, bytes]:
    """The file of attributes as small texts: whole records take several times the memory."""
    try:
        return {name: json.dumps(about).encode() for name, about in object_items(file)}
    except (ValueError, TypeError, RecursionError) as error:
        raise unreadable(file, error) from None


def _write_goals(folder: Path, products: Path, files: Sequence[Path], original: int | None) -> None:
    with _whole(products, files, original):
        lines = JsonLines(products / "products")
        ids = [line[0] for line in lines]
        low, high = load_array(products / "low").tolist(), load_array(products / "high").tolist()
    draws = draws_of(original)
    prices = np.array(
        [a if np.isnan(b) else draws.price(name, a, b) for name, a, b in zip(ids, low, high, strict=True)]
    )
    np.save(folder / "prices.npy", prices)
    try:
        write_lines(folder / "wishes", _templates(ids, lines, files))
    except (KeyError, TypeError, AttributeError) as error:
        raise unreadable(files[-1], error) from None
    goal_lines, stock = JsonLines(folder / "wishes"), StoredProducts(lines, prices)
    if not len(goal_lines):
        raise DataError(f"no product of {files[0].parent} has an instruction: the files must be of one release")
    counts = np.array(
        [goal_templates.count(template, stock[template.product]) for template in map(GoalTemplate._make, goal_lines)]
    )
    order = goal_templates.shuffled(int(counts.sum()))
    np.save(folder / "limits.npy", goal_templates.limits_of(map(GoalTemplate._make, goal_lines), prices, draws))
    np.save(folder / "counts.npy", counts)
    np.save(folder / "order.npy", order)
    if original is None:
        by_product = goal_templates.product_splits(
            (ids[template.product] for template in map(GoalTemplate._make, goal_lines)), counts, order
        )
        for split, places in by_product.items():
            np.save(folder / f"{split}.npy", places)


def _templates(ids: Sequence[str], lines: JsonLines, files: Sequence[Path]) -> Iterator[GoalTemplate]:
    if len(files) == 3:
        return goal_templates.human_templates(ids, table(files[2]))
    return goal_templates.synthetic_templates(ids, ((line[_INSTRUCTION], line[_ASKED]) for line in lines))
