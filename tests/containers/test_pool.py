"""The pool: quick, bounded, fair, and nothing of one lease is seen in the next."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from running import is_there

from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.pool import SIZE_VARIABLE, SandboxPool
from manyturn.containers.sandbox import EngineUnavailable, SandboxLimits, SandboxLost

SMALL = SandboxLimits(memory_mb=128, workspace_mb=4, scratch_mb=4, files=500)


@pytest.fixture
def make(engine: str) -> Iterator[Callable[..., SandboxPool]]:
    made = list[SandboxPool]()

    def one(*args: int, **fields: int) -> SandboxPool:
        made.append(SandboxPool(*args, **fields))
        return made[-1]

    yield one
    for pool in made:
        pool.close()


@pytest.fixture
def kind(engine: str) -> ContainerEngine:
    return ContainerEngine(image=engine, limits=SMALL)


def test_a_sandbox_comes_back_empty(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool = make(1)
    with pool.lease(kind) as first:
        first.run("echo x > x; echo y > /tmp/y; echo z > /dev/shm/z")
    with pool.lease(kind) as second:
        assert second is first
        assert second.run("find /workspace /tmp /dev/shm -mindepth 1").output == ""


@pytest.mark.deep
@pytest.mark.parametrize("script", ["sleep 9", "python3 -c 'x = bytearray(10**9)'"], ids=["deadline", "memory"])
def test_one_that_was_worn_is_replaced(make: Callable[..., SandboxPool], kind: ContainerEngine, script: str) -> None:
    pool = make(1)
    with pool.lease(kind) as first:
        first.run(script, seconds=3.0 if "python" in script else 0.2)
    assert not is_there(first.name)
    with pool.lease(kind) as second:
        assert second is not first and second.run("echo on").output == "on\n"


@pytest.mark.deep
def test_one_that_served_often_is_replaced(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool, names = make(1, leases=2), []
    for _ in range(4):
        with pool.lease(kind) as sandbox:
            names.append(sandbox.name)
    assert names[0] == names[1] != names[2] == names[3]


@pytest.mark.deep
def test_one_that_died_while_it_waited_is_never_handed_out(
    make: Callable[..., SandboxPool], kind: ContainerEngine
) -> None:
    pool = make(1)
    with pool.lease(kind) as first:
        pass
    client().kill(first.name)
    with pool.lease(kind) as second:
        assert second.run("echo on").output == "on\n"


@pytest.mark.deep
def test_an_exception_leaks_nothing(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool = make(1, ahead=0)
    for error in (ValueError, KeyboardInterrupt, SandboxLost):
        with pytest.raises(error), pool.lease(kind) as sandbox:
            raise error
    with pytest.raises(SandboxLost), pool.lease(kind) as sandbox:
        client().kill(sandbox.name)
        sandbox.run("true")
    with pytest.raises(EngineUnavailable, match=r"(?i)no such image"):
        pool.take(kind.model_copy(update={"image": "manyturn-no-such-image:1"}))
    with pool.lease(kind) as sandbox:
        pool.give_back(sandbox)
        pool.give_back(sandbox)
    assert pool.take(kind, seconds=5.0).run("echo on").output == "on\n"


@pytest.mark.deep
def test_there_are_never_more_than_allowed_and_who_waited_longest_is_served(
    make: Callable[..., SandboxPool], kind: ContainerEngine
) -> None:
    pool, order = make(1), list[int]()
    with pytest.raises(EngineUnavailable, match=SIZE_VARIABLE), pool.lease(kind):
        pool.take(kind, seconds=0.05)

    def running() -> set[str]:
        """Containers of this process, of which other tests may hold some."""
        found = client().containers(filters={"label": "manyturn=1", "name": sandbox.name[:-9]})
        return {one["Names"][0].lstrip("/") for one in found}

    def wait(number: int) -> None:
        # Every other one wants another kind, for which the only sandbox has to go.
        with pool.lease(kind if number % 2 else kind.model_copy(update={"margin": 9.0})):
            order.append(number)
            counts.append(len(running() - others))

    counts = list[int]()
    with pool.lease(kind) as sandbox:
        others = running() - {sandbox.name}
        threads = [threading.Thread(target=wait, args=(number,)) for number in range(4)]
        for number, thread in enumerate(threads):
            thread.start()
            while len(pool._queue) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert order == [0, 1, 2, 3] and counts == [1, 1, 1, 1]


@pytest.mark.deep
def test_the_memory_of_the_engine_bounds_it(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool = make(ahead=0)
    pool._memory_mb = 2 * SMALL.memory_mb
    first, second = pool.take(kind), pool.take(kind)
    with pytest.raises(EngineUnavailable):
        pool.take(kind, seconds=0.05)
    for sandbox in (first, second):
        pool.give_back(sandbox)
    with pool.lease(kind.model_copy(update={"limits": SMALL.model_copy(update={"memory_mb": 1024})})):
        assert len(pool._alive) == 1


def test_the_next_is_started_ahead(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool = make(2)
    first = pool.take(kind)
    while not pool._idle:
        time.sleep(0.01)
    names = {sandbox.name for sandbox in pool._idle}
    second = pool.take(kind)
    assert second is not first and second.name in names


@pytest.mark.deep
def test_many_threads_share_a_few(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool, told = make(3), list[str]()

    def work(number: int) -> None:
        with pool.lease(kind) as sandbox:
            told.append(sandbox.run(f"ls; echo {number} | tee x").output)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(told) == sorted(f"{number}\n" for number in range(12))


def test_a_closed_pool_has_nothing_and_gives_nothing(make: Callable[..., SandboxPool], kind: ContainerEngine) -> None:
    pool = make(3)
    leased, idle = pool.take(kind), pool.take(kind)
    pool.give_back(idle)
    pool.close()
    pool.give_back(leased)
    with pytest.raises(EngineUnavailable, match="closed"):
        pool.take(kind)
    assert not is_there(leased.name) and not is_there(idle.name)


@pytest.mark.parametrize("value", ["0", "many", "-1", ""])
def test_a_size_that_is_none_is_refused(engine: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIZE_VARIABLE, value)
    with pytest.raises(ValueError, match=SIZE_VARIABLE):
        SandboxPool()
