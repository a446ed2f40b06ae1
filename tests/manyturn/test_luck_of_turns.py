"""Luck of a turn that stays in its effect, and replies that a replay does not repeat, though they were given to it."""

from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import manyturn as mt
import manyturn.credit as mc
from manyturn.envs.contract.random_keys import generator

TURNS, GROUP, TARGETS, NUMBERS = 5, 6, (12, 14, 16), 300
STAY, ROLL = REPLIES = ("take two", "roll the die")


@cache
def value(target, turn, total):
    """V of the dice game, under a policy that says either with probability 1/2."""
    return float(total >= target) if turn == TURNS else sum(after(target, turn, total, one) for one in REPLIES) / 2


def after(target, turn, total, reply):
    """Q of a reply."""
    eyes = (2,) if reply == STAY else range(1, 7)
    return sum(value(target, turn + 1, total + one) for one in eyes) / len(eyes)


def play(target, turn, total, draws, first=None):
    """Replies of an episode from a state on, and the totals before them and at the end."""
    replies, totals = [], [total]
    for choice, die in draws[turn:]:
        replies.append(REPLIES[choice] if replies or first is None else first)
        totals.append(totals[-1] + (2 if replies[-1] == STAY else die))
    return replies, totals


class DiceGame:
    """Rollouts of the game in a trainer, exact effects of their turns, and its function that plays on."""

    def __init__(self, seed=0):
        draws = generator("dice", seed).integers((0, 1), (2, 7), size=(NUMBERS + 100, TURNS, 2)).tolist()
        self.draws, recorded = draws[:NUMBERS], draws[NUMBERS:]
        plans = [(target, place) for place, target in enumerate(sorted(TARGETS * GROUP))]
        self.episodes = [(target, *play(target, 0, 0, recorded[place])) for target, place in plans]
        self.replies = [replies for _, replies, _ in self.episodes]
        self.rollouts = [
            mc.Rollout(group=target, rewards=[0] * (TURNS - 1) + [totals[-1] >= target], anchors=totals[:-1])
            for target, _, totals in self.episodes
        ]

    @property
    def effects(self):
        return [
            after(target, turn, total, reply) - value(target, turn, total)
            for target, replies, totals in self.episodes
            for turn, (reply, total) in enumerate(zip(replies, totals[:-1], strict=True))
        ]

    def replay(self, rollout, turns, number, first=None):
        target, _, totals = self.episodes[rollout]
        replies, ends = play(target, turns, totals[turns], self.draws[number], first)
        return float(ends[-1] >= target), replies[0]


def agreement(effects, exact):
    return float(np.corrcoef(effects.effect_K, exact)[0, 1])


def test_effects_are_without_the_luck_of_the_turn_where_its_reply_is_repeated():
    game = DiceGame()
    lucky, fair, sparing = (
        mc.audit_rollouts(game.rollouts, game.replay, ["grpo"], NUMBERS, replies=replies)
        for replies in (None, game.replies, [[None if one == STAY else one for one in line] for line in game.replies])
    )
    assert agreement(lucky.sample.effects, game.effects) < 0.75
    for audit in (fair, sparing):
        effects = audit.sample.effects
        errors = (effects.effect_K - game.effects) / effects.error_K
        assert agreement(effects, game.effects) > 0.975 and audit.truth.reliability > 0.95
        assert (errors**2).mean() < 1.5 and np.abs(errors).max() < 5, "they are no smaller than they are"
        assert abs(audit.replayed.errors) < 3 and "give replies" not in str(audit)
    assert fair.luck.turns == len(game.effects) > sparing.luck.turns and fair.luck.spread > 0.1
    assert lucky.continuations < sparing.continuations < fair.continuations
    assert "give replies" in str(lucky) and lucky.scores[0].correlation.mean > fair.scores[0].correlation.mean + 0.05


def test_the_same_numbers_give_the_same_bits_one_at_a_time_and_together():
    game, few = DiceGame(), {"methods": ["grpo"], "continuations": 8, "replies": DiceGame().replies}

    def replay_many(continuations, firsts):
        return [game.replay(*one, first) for one, first in zip(continuations, firsts, strict=True)]

    audits = [mc.audit_rollouts(game.rollouts, replay_many=replay_many, **few) for _ in range(2)]
    effects = [one.sample.effects for one in (*audits, mc.audit_rollouts(game.rollouts, game.replay, **few))]
    assert all(np.array_equal(effects[0].effect_K, one.effect_K) for one in effects[1:])
    assert all(np.array_equal(effects[0].error_K, one.error_K) for one in effects[1:])


@pytest.mark.parametrize(
    ("replay", "replies", "fix"),
    [
        (lambda game, *one: game.replay(*one[:3]), lambda replies: replies, "begin with the given reply"),
        (lambda game, *one: game.replay(*one)[0], lambda replies: replies, "sum, first reply"),
        (lambda game, row, turns, number: 1.0, lambda replies: replies, "first_reply"),
        (DiceGame.replay, lambda replies: replies[:-1], "a list for each"),
        (DiceGame.replay, lambda replies: [line[1:] for line in replies], "one for each turn"),
        (DiceGame.replay, lambda replies: [[None] * TURNS for _ in replies], "leave replies out"),
    ],
)
def test_a_reply_that_is_not_repeated_is_refused_with_its_fix(replay, replies, fix):
    game = DiceGame()
    with pytest.raises(ValueError, match=fix):
        mc.audit_rollouts(game.rollouts, partial(replay, game), ["grpo"], 4, replies=replies(game.replies))


def test_repeated_replies_that_earn_something_else_or_bring_no_luck_are_noticed():
    game = DiceGame()

    def unpaid(*one):
        total, reply = game.replay(*one)
        return total if one[3] is None else 0.0, reply

    audit = mc.audit_rollouts(game.rollouts, unpaid, ["grpo"], 8, replies=game.replies)
    assert audit.luck.errors > 3 and "reward of the first reply" in str(audit)
    ends = [mc.Rollout(group=0, rewards=[end], anchors=["start"]) for end in (0, 1)]
    fixed = mc.audit_rollouts(ends, lambda *one: (float(one[0]), one[3]), ["grpo"], 8, replies=[["left"], ["right"]])
    assert fixed.luck == (2, 0.0, 0.0) and "leave replies out" in str(fixed)


class Walk:
    """Rollouts of a world with known truth, played by the random policy, and a function that plays on."""

    def __init__(self, world, tasks=2, group=6):
        self.env: Any = mt.make(f"manyturn/Pivot{world}-v0").unwrapped
        self.replies, self.rollouts, self.effects, self.states = [], [], [], []
        self.policy = generator("continuations").random((100, 6)).tolist()
        for row in range(tasks * group):
            task = f"train/easy/{row // group}"
            self.env.reset(seed=row, options={"task": task})
            states, replies, rewards, over = [], [], [], False
            for u in generator("rollout", row).random(6).tolist():
                if over:
                    break
                states.append(self.env.snapshot())
                replies.append(self.draw(u))
                self.effects.append(self.env.effect(replies[-1]))
                reward, over = self.step(replies[-1])
                rewards.append(reward)
            self.replies.append(replies)
            self.states.append(states)
            self.rollouts.append(mc.Rollout(group=task, rewards=rewards))

    def draw(self, u):
        return self.env.admissible()[int(u * len(self.env.admissible()))]

    def step(self, reply):
        _, reward, terminated, truncated, _ = self.env.step(reply)
        return float(reward), terminated or truncated

    def replay(self, row, turns, number, first=None):
        self.env.restore(self.states[row][turns])
        self.env.rng.bit_generator.state = generator("chance", number).bit_generator.state
        replies, total, over = [], 0.0, False
        while not over:
            drawn = self.draw(self.policy[number][turns + len(replies)])
            replies.append(drawn if replies or first is None else first)
            reward, over = self.step(replies[-1])
            total += reward
        return total, replies[0]


@pytest.mark.parametrize("world", ["One", "Sign", "Pair", "Repair", "Delay", "Luck"])
def test_repeated_replies_have_the_closed_form_as_their_effect(world):
    walk = Walk(world)
    audits = [mc.audit_rollouts(walk.rollouts, walk.replay, ["grpo"], 40, replies=one) for one in (walk.replies, None)]
    repeated, luck = (one.sample.effects for one in audits)
    errors = (repeated.effect_K - walk.effects) / repeated.error_K
    assert agreement(repeated, walk.effects) > 0.9 and (errors**2).mean() < 2 and np.abs(errors).max() < 5
    has_luck = world == "Luck"
    assert (agreement(luck, walk.effects) < 0.8) == (audits[0].luck.spread > 0.1) == has_luck
    assert has_luck or np.allclose(luck.effect_K, repeated.effect_K), "common random numbers"
