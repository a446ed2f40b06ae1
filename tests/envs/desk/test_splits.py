"""What is tested must be new: other customers, and requests put together in other ways."""

import pytest

from manyturn.envs.desk.customer_generator import split_of_user
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.task_shapes import LEVELS, WAYS, Shape, requests_of, split_of_shape
from manyturn.envs.desk.tasks import tasks

SPLITS = ("train", "validation", "test")


def shape_of(task) -> tuple:
    """What a task asks for, in no order."""
    params = task.params
    names = sorted(f"{request['kind']} {request['rule']}".strip() for request in params["requests"])
    return params["way"], params["asked"]["field"] if params["asked"] else "", tuple(names)


@pytest.mark.parametrize("pack", PACKS.values(), ids=lambda pack: pack.name)
@pytest.mark.parametrize("difficulty", LEVELS)
def test_neither_customers_nor_shapes_nor_records_are_shared(pack, difficulty: str) -> None:
    count = {"medium": 40, "hard": 10}.get(difficulty, 200)
    sample = {split: tasks(split, pack.name, difficulty, 300, 0)[:count] for split in SPLITS}
    parted = LEVELS[difficulty].parted
    users = {split: {task.params["user"] for task in found} for split, found in sample.items()}
    shapes = {split: set(map(shape_of, found)) for split, found in sample.items()}
    records = {split: {r["key"] for task in found for r in task.params["requests"]} for split, found in sample.items()}
    for sets in (users, shapes, records) if parted else (users, records):
        for one, two in (("train", "validation"), ("train", "test"), ("validation", "test")):
            assert not sets[one] & sets[two]
    assert all(split_of_user(user) == split for split, found in users.items() for user in found)


@pytest.mark.parametrize("pack", PACKS.values(), ids=lambda pack: pack.name)
def test_every_split_of_the_lowest_difficulty_has_all_its_shapes(pack) -> None:
    granted, refused = requests_of(pack)
    simple = {kind.name for kind in pack.kinds if kind.simple}
    every = {("id", "", (name,)) for name in (*granted, *refused) if name.partition(" ")[0] in simple}
    for split in SPLITS:
        assert set(map(shape_of, tasks(split, pack.name, "tiny", 300, 0)[:800])) == every


@pytest.mark.parametrize("pack", PACKS.values(), ids=lambda pack: pack.name)
def test_every_piece_of_a_held_out_shape_is_trained_on(pack) -> None:
    granted, refused = requests_of(pack)
    figures = ("", *pack.figures)
    every = [Shape(way, figure, (name,)) for way in WAYS for figure in figures for name in (*granted, *refused)]
    of = {split: [shape for shape in every if split_of_shape(pack, shape) == split] for split in SPLITS}
    for held_out in ("validation", "test"):
        assert any(" " in shape.requests[0] for shape in of[held_out])
        assert any(" " not in shape.requests[0] for shape in of[held_out])
    assert {shape.requests for shape in of["train"]} == {shape.requests for shape in every}
    assert {shape.way for shape in of["train"]} == set(WAYS)
    assert {shape.figure for shape in of["train"]} == set(figures)


def test_the_order_of_requests_does_not_make_a_new_shape() -> None:
    pack = PACKS["retail"]
    for way in WAYS:
        one, two = Shape(way, "", ("cancel", "return R4")), Shape(way, "", ("return R4", "cancel"))
        assert split_of_shape(pack, one) == split_of_shape(pack, two)
