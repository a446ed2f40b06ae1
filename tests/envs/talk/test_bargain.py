"""Bargaining: the curves, what a deal pays, and that the two sides see and earn their own only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.talk.bargain.concession import CURVES, DISCOUNT, Counterpart
from manyturn.envs.talk.bargain.game import PriceGame, SplitGame
from manyturn.envs.talk.bargain.moves import Move, move_text, read_move
from manyturn.envs.talk.bargain.negotiation import GAMES, LEVELS, Negotiation
from manyturn.envs.talk.bargain.self_play import SelfPlay

PRICE = PriceGame({"thing": "lamp", "least": 100, "most": 150, "listed": 180})
SPLIT = SplitGame({"things": ["books", "hats", "balls"], "counts": [3, 1, 2], "values": [[1, 3, 2], [0, 4, 3]]})


def counterpart(curve: str, game=PRICE, side: int = 1, reserve: float = 0.0, proud: bool = False) -> Counterpart:
    return Counterpart(game, side, CURVES[curve], reserve, 8, proud)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("curve", CURVES)
def test_a_counterpart_gives_way_from_its_first_offer_to_its_reserve(curve, side):
    who = counterpart(curve, side=side)
    offers = [who.offer(turn, None) for turn in range(8)]
    assert offers == sorted(offers, reverse=side == 1)
    assert offers[0] == (180 if side == 1 else 75) and offers[-1] == (100 if side == 1 else 150)


def test_the_curves_have_their_shapes():
    gone = {curve: (180 - counterpart(curve).offer(4, None)) / 80 for curve in CURVES}
    assert gone["boulware"] < 0.2 < gone["linear"] < 0.65 < gone["conceder"]


@given(turn=st.integers(0, 7), price=st.integers(50, 200), curve=st.sampled_from(list(CURVES)))
def test_it_takes_what_is_as_good_as_its_own_offer_and_nothing_worse(turn, price, curve):
    who = counterpart(curve)
    assert who.takes(price, turn) is (price >= who.offer(turn, None))


@given(st.sampled_from(SPLIT.offers()), st.integers(0, 1))
def test_offers_are_read_as_they_are_written(terms, side):
    move = Move("offer", terms)
    for words in (move_text(SPLIT, side, move), f"Well, I cannot accept that: {move_text(SPLIT, side, move)}."):
        assert read_move(SPLIT, side, words) == move
    assert SPLIT.worth(0, terms) + 0 == sum(v * n for v, n in zip([1, 3, 2], terms, strict=True)) / 10
    assert SPLIT.other_best(side, terms) >= 0


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("offer 120", Move("offer", 120)),
        ("Offer $120.", Move("offer", 120)),
        ("An offer of mine, once more: offer 120", Move("offer", 120)),
        ("accept", Move("accept")),
        ("Fine, accept.", Move("accept")),
        ("I cannot accept", None),
        ("I will not walk away", None),
        ("Enough. Walk away!", Move("walk away")),
        ("offer 120 or so", None),
        ("offer 12345678", None),
        ("offer -3", None),
        ("", None),
        ("offer " * 20_000, None),
    ],
)
def test_a_move_stands_at_the_end_of_what_is_said(text, move):
    assert read_move(PRICE, 0, text) == move


def begun(curve: str = "linear", proud: bool = False, game: str = "price") -> Negotiation:
    env = Negotiation(difficulty="hard" if proud else "medium", game=game)
    price = {"game": "price", "thing": "lamp", "least": 100, "most": 150, "listed": 180}
    split = {"game": "split", "things": ["books", "hats", "balls"], "counts": [3, 1, 2]}
    split |= {"values": [[1, 3, 2], [0, 4, 3]]}
    rest = {"side": 0, "curve": curve, "reserve": 0.0 if game == "price" else 0.4, "proud": proud}
    params = {**(price if game == "price" else split), **rest}
    env.reset(seed=1, options={"task": Task("one", "train", params)})
    return env


def test_a_deal_pays_its_discounted_worth_as_a_share_of_the_best_response():
    env = begun()
    best = max((150 - counterpart("linear").offer(turn, None)) / 50 * DISCOUNT**turn for turn in range(8))
    env.step("offer 100")
    _, reward, ended, _, info = env.step("offer 169")  # as good as the counterpart's own offer, but a loss
    assert ended and not info["success"] and reward == pytest.approx(max(-1, (150 - 169) / 50 * DISCOUNT / best))
    assert info["pareto_gap"] == 0
    env = begun()
    for _ in range(7):
        env.step("offer 100")
    assert env.step("offer 100")[1] == pytest.approx(1.0)


def test_no_deal_pays_nothing_and_accepting_takes_the_standing_offer():
    assert begun().step("walk away")[1:3] == (0.0, True)
    env = begun("conceder")
    for _ in range(5):
        text = env.step("offer 90")[0]
    price = int(text.rstrip(".").split()[-1])
    best = max((150 - counterpart("conceder").offer(turn, None)) / 50 * DISCOUNT**turn for turn in range(8))
    assert env.step("accept")[1] == pytest.approx((150 - price) / 50 * DISCOUNT**5 / best)


def test_a_proud_counterpart_leaves_after_two_insults_only():
    env = begun(proud=True)
    assert not env.step("offer 99")[2]
    assert env.step("offer 98")[2]
    env = begun(proud=True)
    assert not any(env.step("offer 100")[2] for _ in range(6))


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("difficulty", LEVELS)
def test_no_policy_of_fixed_offers_beats_the_best_response(game, difficulty):
    env, rng = Negotiation(game=game, difficulty=difficulty), generator("fixed")
    for number in range(30):
        env.reset(seed=number)
        ended, total = False, 0.0
        while not ended:
            able = env.admissible()
            _, reward, terminated, truncated, _ = env.step(able[int(rng.integers(len(able)))])
            total, ended = total + reward, terminated or truncated
        assert -1 <= total <= 1 + 1e-9


def test_the_agent_is_not_told_what_only_the_counterpart_knows():
    env = begun()
    assert "150" in env.observation and "100" not in env.observation
    text = begun(game="split").observation
    assert "books 1, hats 3, balls 2" in text and "hats 4" not in text


# ---- both sides by policies ------------------------------------------------------------------------------------


def both(game: str = "price") -> SelfPlay:
    env = SelfPlay(game=game)
    price = {"game": "price", "thing": "lamp", "least": 100, "most": 150, "listed": 180, "opens": 0}
    split = {"game": "split", "things": ["books", "hats", "balls"], "counts": [3, 1, 2], "opens": 0}
    params = price if game == "price" else {**split, "values": [[1, 3, 2], [0, 4, 3]]}
    env.reset(seed=1, options={"task": Task("one", "train", params)})
    return env


def test_the_sides_take_turns_and_each_sees_its_own_secret_only():
    env = both()
    text, info = env.observation, env.reset(seed=1, options={"task": env.task})[1]
    assert info["role"] == "buyer" and "150" in text and "100" not in text
    text, *_, info = env.step("I start low: offer 110")
    assert info["role"] == "seller" and "100" in text and "150" not in text and "I start low: offer 110" in text
    text, *_, info = env.step("nonsense")
    assert info["role"] == "seller" and not info["understood"] and "150" not in text
    text, *_, info = env.step("offer 130")
    assert info["role"] == "buyer" and "150" in text


def test_a_deal_pays_each_side_its_own_and_parts_say_whose_they_are():
    env = both()
    env.step("offer 110")
    env.step("offer 130")
    _, reward, ended, _, info = env.step("accept")
    assert ended and info["role"] == "buyer"
    assert info["reward_parts"] == pytest.approx({"buyer.outcome": 0.4 * DISCOUNT, "seller.outcome": 0.6 * DISCOUNT})
    assert reward == pytest.approx(DISCOUNT) and set(info["reward_parts"]) == set(env.part_names)
    assert info["success"]  # 0.4 x 0.6 is 0.96 of what splitting the difference gives


def test_a_ruinous_deal_is_paid_as_such_and_no_success():
    env = both()
    env.step("offer 170")
    _, _, _, _, info = env.step("accept")
    assert info["reward_parts"] == pytest.approx({"buyer.outcome": -0.4, "seller.outcome": 1.4})
    assert not info["success"]


def test_what_one_side_keeps_is_what_the_other_does_not_get():
    env = both("split")
    env.step("offer 3 books, 0 hats, 0 balls")
    _, _, _, _, info = env.step("accept")
    assert info["reward_parts"] == pytest.approx({"first.outcome": 0.3, "second.outcome": 1.0})
