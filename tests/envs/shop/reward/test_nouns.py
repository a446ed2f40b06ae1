"""Nouns of titles must be the original's, and once found they need no model."""

from pathlib import Path

import pytest
from needs import peer

from manyturn.envs.shop.reward import nouns as module
from manyturn.envs.shop.reward.nouns import SpacyNouns

TITLE = "Women's High Waist Yoga Pants for Running"


class Word:
    def __init__(self, text: str, pos_: str):
        self.text, self.pos_ = text, pos_


def tagged(title: str) -> list[Word]:
    """Stands for the model: words with a capital are nouns."""
    return [Word(word, "NOUN" if word[0].isupper() else "ADP") for word in title.split()]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_version", {"en_core_web_sm": "3.8.0"}.get)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_version", lambda name: None)


def found_before(folder: Path, *titles: str) -> None:
    """What a process with the model has left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_version", {"en_core_web_sm": "3.8.0"}.get)
        nouns = SpacyNouns(folder)
        nouns._model = tagged
        for title in titles:
            assert nouns(title) == nouns(title)


@pytest.mark.slow
def test_the_golden_nouns_come_out(golden, tmp_path: Path) -> None:
    peer("spacy")
    nouns, cases = SpacyNouns(tmp_path), golden("webshop_reward_cases")["cases"]
    for case in cases:
        assert nouns(case["product"]["name"]) == tuple(case["purchased_nouns"])
        assert nouns(case["goal"]["name"]) == tuple(case["desired_nouns"])
    assert cases and all(line for line in nouns.file.read_text().splitlines())


def test_titles_met_before_need_no_model(tmp_path: Path, absent: None) -> None:
    found_before(tmp_path, TITLE, "")
    nouns = SpacyNouns(tmp_path)
    assert nouns(TITLE) == ("women's", "high", "waist", "yoga", "pants", "running") and nouns("") == ()
    with pytest.raises(ValueError, match=r"nouns of 'Another'.*manyturn\[webshop\]"):
        nouns("Another")


def test_an_installed_model_is_not_loaded_for_titles_met_before(tmp_path: Path, installed: None) -> None:
    found_before(tmp_path, TITLE)
    nouns = SpacyNouns(tmp_path)
    assert nouns(TITLE) and nouns._model is None


def test_each_version_of_the_model_has_its_own_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found_before(tmp_path, TITLE)
    monkeypatch.setattr(module, "_version", {"en_core_web_sm": "3.9.0"}.get)
    nouns = SpacyNouns(tmp_path)
    nouns._model = lambda title: []
    assert nouns(TITLE) == () and len(list(tmp_path.iterdir())) == 2


def test_a_line_that_was_cut_off_costs_its_title_only(tmp_path: Path, absent: None) -> None:
    found_before(tmp_path, TITLE, "A Lamp", "B Lamp")
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    assert SpacyNouns(tmp_path)("A Lamp") == ("a", "lamp")
    found_before(tmp_path, "C Lamp", "D Lamp")
    assert SpacyNouns(tmp_path)("D Lamp") == ("d", "lamp")


def test_without_model_and_record_the_error_names_the_extra(tmp_path: Path, absent: None) -> None:
    with pytest.raises(ValueError, match=r"manyturn\[webshop\].*official"):
        SpacyNouns(tmp_path / "none")
