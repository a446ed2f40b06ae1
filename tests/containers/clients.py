"""Other processes that hold sandboxes: see test_pool and test_reaper."""

import os
import sys
import time

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import lease, the_pool


def hold(image: str) -> None:
    """Run a command for a long time."""
    sandbox = DockerSandbox(ContainerEngine(image=image))
    sandbox.start()
    print(sandbox.name, flush=True)
    sandbox.run("sleep 100", seconds=100)


def fork(image: str) -> None:
    """A child outlives its parent, which held a sandbox; it had a pool of its own and could not use the parent's."""
    with lease(ContainerEngine(image=image)) as sandbox:
        print(sandbox.name, flush=True)
        pool = the_pool()
        if os.fork():
            time.sleep(100)
        assert the_pool() is not pool
        try:
            sandbox.ping()
        except Exception as error:
            print(type(error).__name__, flush=True)
        sandbox.stop()
        with lease(ContainerEngine(image=image)) as other:
            print(other.name, flush=True)
            print(other.run("echo from the child").output.strip(), flush=True)
        os.close(1)
        time.sleep(100)


def leave(image: str) -> None:
    """End with sandboxes that are leased, idle and being started."""
    print(the_pool().take(ContainerEngine(image=image)).name, flush=True)
    with lease(ContainerEngine(image=image)) as sandbox:
        print(sandbox.name, flush=True)


if __name__ == "__main__":
    {"hold": hold, "fork": fork, "leave": leave}[sys.argv[1]](sys.argv[2])
