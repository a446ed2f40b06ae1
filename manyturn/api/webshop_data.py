"""External data: what a folder holds, whether it is what it was, and what had to be prepared."""

import time
from pathlib import Path

from manyturn.envs.shop.reward.nouns import SpacyNouns
from manyturn.envs.shop.webshop import file_preparation
from manyturn.envs.shop.webshop.goal_tasks import tasks_of
from manyturn.envs.shop.webshop.hash_cache import KNOWN, PUBLIC_COPY, Facts, cache_folder, facts_of, record, recorded
from manyturn.envs.shop.webshop.official_shop import load
from manyturn.envs.shop.webshop.records import ALL_PRODUCTS, HUMAN, KINDS, SOURCE, files_of


def webshop(folder: Path, original: int | None = None, nouns: bool = False, accept: bool = False) -> bool:
    """Look through a folder of WebShop's files, prepare all products if they are there, and print what was found.

    Args:
        folder: of the official files.
        original: see ``official.load``.
        nouns: record the nouns of all titles, for rewards in processes without spaCy.
        accept: record the files as they are, even if something else was recorded before.

    Returns:
        Whether every file is as it is known or recorded to be.

    Raises:
        DataError: a file is missing or cannot be read.
    """
    files = files_of(folder, "synthetic")
    root, full = files[0].parent, files[0].name == ALL_PRODUCTS
    if (root / HUMAN).is_file():
        files += (root / HUMAN,)
    facts, before = {file.name: facts_of(file) for file in files}, recorded(root)
    standing = {name: _standing(name, fact, before.get(name)) for name, fact in facts.items()}
    for name, fact in facts.items():
        print(f"{name}: {_bytes(fact.size)}, sha256 {fact.sha256}, {standing[name]}")
    if HUMAN not in facts:
        print(f"{HUMAN}: missing, only human goals need it ({SOURCE.format(size='all' if full else 'small')})")
    right = all(not text.startswith("differs") for text in standing.values())
    if not right and not accept:
        print("fetch what differs again, or give --accept to take the files as they are")
        return False
    record(root, facts)
    for kind in KINDS[: len(files) - 1]:
        if full:
            _prepare(
                files_of(folder, kind), [facts[file.name].sha256 for file in files_of(folder, kind)], kind, original
            )
        _print_goals(root, kind, original)
    if nouns:
        _record_nouns(root, original)
    return True


def _standing(name: str, facts: Facts, before: Facts | None) -> str:
    if before is not None and before.sha256 != facts.sha256:
        return f"differs from the recorded {before.sha256}"
    if name in KNOWN and before is None and KNOWN[name] != facts.git:
        return f"differs from the copy in {PUBLIC_COPY}"
    if KNOWN.get(name) == facts.git:
        return f"as in {PUBLIC_COPY}"
    return "as recorded" if before else "recorded now"


def _bytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.2f} MB"


def _prepare(files: tuple[Path, ...], hashes: list[str], kind: str, original: int | None) -> None:
    before, start = set(cache_folder().glob("*")), time.monotonic()
    for folder in file_preparation.prepare(files, hashes, kind, original):
        size = _bytes(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
        how = "there already" if folder in before else f"prepared, {time.monotonic() - start:.0f} s so far"
        print(f"{folder}: {size}, {how}")


def _print_goals(root: Path, kind: str, original: int | None) -> None:
    shop = load(root, kind, original)
    splits = ", ".join(f"{split} {len(tasks):,}" for split, tasks in tasks_of(shop, kind, original).items())
    print(f"{len(shop.catalogue.products):,} products, {kind} goals: {len(shop.goals):,} ({splits})")


def _record_nouns(root: Path, original: int | None) -> None:
    nouns, products = SpacyNouns(cache_folder() / "nouns"), load(root, "synthetic", original).catalogue.products
    for product in products:
        nouns(product.title)
    print(f"nouns of {len(products):,} titles: {nouns.file}")
