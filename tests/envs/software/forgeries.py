"""Sources that forge a result, by class and variant: each stands at the top of a library that mends nothing.

Those of a class differ in one thing: where they find what reports, what they say, when, or what they change. They know
this very grader, and the tests' own answers by heart. Their texts are in forgeries.txt.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path


def _read() -> Mapping[str, Mapping[str, str]]:
    """Class -> name of a variant -> its text."""
    found: dict[str, dict[str, str]] = {}
    for part in Path(__file__).with_suffix(".txt").read_text().split("=== ")[1:]:
        head, _, text = part.partition("\n")
        kind, _, name = head.partition(": ")
        found.setdefault(kind, {})[name] = text.strip()
    return found


KINDS = _read()

SAYS = """\
import os, sys
KNOWN = {"test_add": [3], "TestTotal::test_total": [6]}
def says(r):
    send, tests = r
    for t in tests:
        send({"id": t, "outcome": "passed", "text": "", "answers": ANSWERS})
    send({"exit": 0})
    os._exit(0)
def find():
    found = []
FINDER
    for o in found:
        if hasattr(o, "_send") and hasattr(o, "_chosen"):
            return o._send, sorted(o._chosen)
    send = [o for o in found if hasattr(o, "_nonce")]
    orders = [o for o in found if isinstance(o, dict) and "chosen" in o and "nonce" in o]
    return (send[0], orders[0]["chosen"]) if send and orders else None
"""
ASKED = """\
import builtins
f = sys._getframe()
while "order" not in f.f_locals:
    f = f.f_back
if not f.f_locals["order"]["seconds"]:
    says(find())
def answer(self, n, *v):
    try:
DO
    except Exception:
        pass
for name in NAMES:
    setattr(type(builtins.__ask__), name, answer)
"""
FORGES_FIRST = """\
f = sys._getframe()
while "order" not in f.f_locals:
    f = f.f_back
if not f.f_locals["order"]["seconds"]:
    says(find())
"""
WRITES = """\
import gc, json, os, sys
def nonce_of(f):
    while f:
        if "order" in f.f_locals:
            return f.f_locals["order"]["nonce"].encode()
        f = f.f_back
try:
    nonce = NONCE or b""
except Exception:
    nonce = b""
tests = "tests/test_core.py::test_add", "tests/test_core.py::TestTotal::test_total"
records = [{"id": t, "outcome": "passed", "text": "", "answers": []} for t in tests] + [{"exit": 0}]
for d in PLACE:
    try:
        os.write(d, b"".join(nonce + b" " + json.dumps(r).encode() + b"\\n" for r in records))
    except OSError:
        pass
os._exit(0)
"""


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _forged() -> Iterator[tuple[str, str]]:
    """Reports in the reporter's own words."""

    def text(finder: str, saying: str, time: str) -> str:
        said = SAYS.replace("ANSWERS", KINDS["SAYINGS"][saying])
        return said.replace("FINDER", _indented(KINDS["FINDERS"][finder], 4)) + KINDS["TIMES"][time]

    for finder, saying in product(KINDS["FINDERS"], KINDS["SAYINGS"]):
        yield f"forged, found by {finder}, says {saying}", text(finder, saying, "at import")
    for time, saying in product(list(KINDS["TIMES"])[1:], list(KINDS["SAYINGS"])[::2]):
        yield f"forged {time}, says {saying}", text("gc", saying, time)


def _answered() -> Iterator[tuple[str, str]]:
    """Answers by a forger who takes the asker's place."""
    said = SAYS.replace("ANSWERS", "[]").replace("FINDER", _indented(KINDS["FINDERS"]["gc"], 4))
    for names, (name, do) in product(("value", "value both truth"), KINDS["ANSWERERS"].items()):
        text = said + ASKED.replace("DO", _indented(do, 8)).replace("NAMES", repr(names.split()))
        yield f"forged, then answers {name}, for {names}", text


def _written() -> Iterator[tuple[str, str]]:
    """Lines in descriptors."""
    for (place, where), (nonce, what) in product(KINDS["PLACES"].items(), KINDS["NONCES"].items()):
        yield f"writes to {place} with {nonce}", WRITES.replace("NONCE", what).replace("PLACE", where)


def forging_first() -> str:
    """A top that says of all tests that they pass, and is silent when they are asked: then the challenge decides."""
    return SAYS.replace("ANSWERS", "[]").replace("FINDER", _indented(KINDS["FINDERS"]["frames"], 4)) + FORGES_FIRST


def all_of_them() -> dict[str, str]:
    """Every forgery by its name: text at the top of ``calc/core.py``."""
    found = dict([*_forged(), *_answered(), *_written()])
    for kind, verb in (("ENDS", "ends by"), ("PATCHES", "patched:"), ("STEERED", "steered:")):
        found |= {f"{verb} {name}": f"import os, sys\n{text}" for name, text in KINDS[kind].items()}
    return found


def results_of_them() -> dict[str, str]:
    """Every result that satisfies any test, or is read from one: ``CALL`` in place of ``add``'s sum."""
    named = {f"a result that {name}": f"{text}\nCALL = lambda a, b: R(3)" for name, text in KINDS["OBJECTS"].items()}
    named |= {f"a result from {name}": f"{text}\nCALL = R" for name, text in KINDS["READERS"].items()}
    named |= {f"knows by heart: {name}": f"{text}\nCALL = R" for name, text in KINDS["HEARTS"].items()}
    named |= {
        f"forges the first run, then knows by heart: {name}": f"{forging_first()}{text}\nCALL = R"
        for name, text in list(KINDS["HEARTS"].items())[:4]
    }
    return {name: f"import os, sys\n{text}\n" for name, text in named.items()}
