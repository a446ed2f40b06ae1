"""A run with shared tokens that does not say how many, or that cannot be resumed.

That it ends in the weights of padding is one of the options that change nothing: ``test_no_inert_method.py``.
"""

import json

from played_guesses import short_guesses
from short_runs import resumed_to_the_bit

from manyturn.trainers.learn.passes.trie.packing import LEAST


def test_a_run_with_shared_tokens_says_how_many_and_goes_on_to_the_bit_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setitem(LEAST, "trie", 1)  # this game has no instructions
    learner = {"minibatch": 9, "packing": "trie"}
    run = resumed_to_the_bit(short_guesses(learner=learner), tmp_path)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    ratios = [line["packing_ratio"] for line in lines if line["phase"] == "train"]
    assert len(ratios) == 4 and all(0 < ratio < 1 for ratio in ratios), ratios
