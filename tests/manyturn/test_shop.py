"""A shop that a person cannot enter, that gives everybody one visit, or that does not end."""

import re
import signal
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from manyturn.cli.shop import Reception


def test_everybody_gets_a_task_and_a_visit_of_their_own():
    one, other = (Reception("manyturn/Shop-v0", {"products": 50}, "test", seed=4) for _ in range(2))
    pages = [one.arrive("/door").document().html for _ in range(4)]
    assert pages == [other.arrive("/door").document().html for _ in range(4)] and len(set(pages)) > 1


def test_what_is_no_shop_is_told():
    with pytest.raises(ValueError, match="is no shop with pages"):
        Reception("manyturn/Maze-v0")


def test_a_person_buys_and_goes_on_and_ctrl_c_ends_it():
    command = [sys.executable, "-m", "manyturn", "shop", "--env-args", "{products = 50}"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        door = re.search(r"http://127\.0\.0\.1:\d+/\S+", server.stdout.readline())[0]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # follows redirects as a browser does
        with opener.open(door) as answer:
            home, address = answer.read().decode(), answer.url
        assert "Instruction: " in home and address != door
        with opener.open(address, b"choice=1&words=lamp") as answer:
            assert "Total results: " in answer.read().decode() and answer.url.endswith("/1")
        with opener.open(door) as answer:
            assert answer.url.rpartition("/")[0] != address.rpartition("/")[0]
    finally:
        server.send_signal(signal.SIGINT)
        rest, errors = server.communicate(timeout=20)
    assert (server.returncode, rest, errors) == (130, "", "")
