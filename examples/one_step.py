"""One training step in one file: play groups of episodes, give credit to turns, compute the loss, update.

    python examples/one_step.py

A tiny decoder learns to find its way through a maze. This is what ``manyturn train --recipe quickstart`` does, without
all that makes a run fast and safe: batches, a cache of keys and values, processes, checkpoints, metrics. A test checks
that the trainer's weights after three steps are the same.

Letters: E episodes, K turns, T tokens, B rows, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import gymnasium
import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

import manyturn as mt
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator

GROUP, TASKS = 8, 8  # episodes of a task, tasks of a step
GAMMA, TURN_WEIGHT, EPS = 0.95, 1.0, 1e-6  # GiGPO
LOW, HIGH, DUAL = 0.2, 0.28, 3.0  # the clip
LEARNING_RATE, MAX_NORM, MAX_TOKENS = 5e-4, 1.0, 8


@dataclass
class Turn:
    """A turn: its situation, its reward, and the place of its reply among the episode's tokens."""

    anchor: str
    reward: float
    span: slice


@dataclass
class Episode:
    """One attempt at a task; its tokens are what the model read and wrote, in order."""

    task: str
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)  # 0 where the environment spoke
    turns: list[Turn] = field(default_factory=list)
    success: bool = False


# ---- 1. play


@torch.no_grad()
def reply(language: LanguageModel, prompt: list[int], noise: np.ndarray) -> tuple[list[int], list[float]]:
    """Draw tokens until the model ends its reply: ids and log-probabilities.

    Args:
        noise: a number in [0, 1) for each token that may be drawn. It comes from the episode's key, so that nothing
            else decides what is drawn.
    """
    ids, logprobs = list[int](), list[float]()
    for u in noise:
        logits = language.model(torch.tensor([prompt + ids])).logits[0, -1].float()
        logprob_V = torch.log_softmax(logits, -1)
        cumulative_V = logprob_V.exp().cumsum(-1, dtype=torch.float64)
        token = int(
            torch.searchsorted(cumulative_V, float(u) * cumulative_V[-1], right=True).clamp(max=len(logits) - 1)
        )
        ids.append(token)
        logprobs.append(float(logprob_V[token]))
        if token in language.template.end_ids:
            break
    return ids, logprobs


def play(language: LanguageModel, env: gymnasium.Env, task: mt.Task, key: EpisodeKey) -> Episode:
    """Play one episode. The members of a group meet the same world, and draw different replies."""
    template, episode = language.template, Episode(task.id)
    text, info = env.reset(seed=key.reset_seed(), options={"task": task.id})
    prompt = template.opening("", text)
    while True:
        ids, logprobs = reply(language, prompt, generator(key.noise_seed(len(episode.turns))).random(MAX_TOKENS))
        anchor, action = info["anchor"], template.decode(ids).strip()
        text, reward, terminated, truncated, info = env.step(action)
        episode.turns.append(Turn(str(anchor), float(reward), slice(len(prompt), len(prompt) + len(ids))))
        episode.logprobs += [0.0] * (len(prompt) - len(episode.ids)) + logprobs
        episode.ids = prompt + ids
        if terminated or truncated:
            episode.success = bool(info["success"])
            return episode
        prompt = episode.ids + template.bridge(text, ended=ids[-1] in template.end_ids)


def play_groups(language: LanguageModel, env: gymnasium.Env, tasks: Sequence[mt.Task], step: int) -> list[Episode]:
    """A group of episodes of each task."""
    keys = [(task, EpisodeKey(0, f"train/{step}", task.id, member)) for task in tasks for member in range(GROUP)]
    return [play(language, env, task, key) for task, key in keys]


# ---- 2. credit: GiGPO, arXiv 2505.10978


def gigpo(episodes: Sequence[Episode]) -> list[np.ndarray]:
    """The advantage of each turn, one array for each episode.

    An episode is compared with the others of its task, and a turn with all turns of the task that began in the same
    situation: the same anchor.
    """
    advantages = [np.zeros(len(episode.turns)) for episode in episodes]
    for _, group in groupby(range(len(episodes)), key=lambda e: episodes[e].task):
        members = list(group)
        total_E = normalised([sum(turn.reward for turn in episodes[e].turns) for e in members])
        situations: dict[str, list[tuple[int, int, float]]] = {}
        for e, total in zip(members, total_E, strict=True):
            advantages[e] += total
            to_go = 0.0
            for k, turn in reversed(list(enumerate(episodes[e].turns))):
                to_go = turn.reward + GAMMA * to_go
                situations.setdefault(turn.anchor, []).append((e, k, to_go))
        for turns in situations.values():
            for (e, k, _), value in zip(turns, normalised([to_go for *_, to_go in turns]), strict=True):
                advantages[e][k] += TURN_WEIGHT * value
    return advantages


def normalised(values: Sequence[float]) -> np.ndarray:
    """Minus the mean, over the standard deviation; 0 where all are equal, since nothing can be compared."""
    array = np.array(values)
    if array.max() == array.min():
        return np.zeros(len(array))
    return (array - array.mean()) / (array.std(ddof=1) + EPS)


# ---- 3. loss: PPO's clip with DAPO's bounds and the dual clip


def clipped_loss(
    language: LanguageModel, episodes: Sequence[Episode], advantages: Sequence[np.ndarray]
) -> torch.Tensor:
    """The mean over all tokens that the policy said."""
    advantage_E, said_E = list[torch.Tensor](), list[torch.Tensor]()
    for episode, advantage_K in zip(episodes, advantages, strict=True):
        advantage_T, said_T = torch.zeros(len(episode.ids)), torch.zeros(len(episode.ids), dtype=torch.bool)
        for turn, advantage in zip(episode.turns, advantage_K, strict=True):
            advantage_T[turn.span], said_T[turn.span] = float(advantage), True
        advantage_E.append(advantage_T)
        said_E.append(said_T)
    ids_BT = pad_sequence([torch.tensor(episode.ids) for episode in episodes], batch_first=True)
    old_BT = pad_sequence([torch.tensor(episode.logprobs) for episode in episodes], batch_first=True)
    advantage_BT, said_BT = (pad_sequence(rows, batch_first=True) for rows in (advantage_E, said_E))

    logprob_BTV = torch.log_softmax(language.model(ids_BT).logits[:, :-1], -1)  # token t is said out of state t - 1
    logprob_BT = logprob_BTV.gather(-1, ids_BT[:, 1:, None])[..., 0]
    old_BT, advantage_BT, said_BT = old_BT[:, 1:], advantage_BT[:, 1:], said_BT[:, 1:]
    ratio = (logprob_BT - old_BT).masked_fill(~said_BT, 0.0).exp()
    loss = torch.maximum(-advantage_BT * ratio, -advantage_BT * ratio.clamp(1 - LOW, 1 + HIGH))
    loss = torch.where(advantage_BT < 0, torch.minimum(loss, -DUAL * advantage_BT), loss)
    return (loss * said_BT).sum() / said_BT.sum()


# ---- 4. one step


def one_step(
    language: LanguageModel, optimizer: torch.optim.Optimizer, env: gymnasium.Env, tasks: Sequence[mt.Task], step: int
) -> tuple[list[Episode], list[np.ndarray], float]:
    """Play, give credit, update once; returns the episodes, their advantages and the loss."""
    episodes = play_groups(language, env, tasks, step)
    advantages = gigpo(episodes)
    loss = clipped_loss(language, episodes, advantages)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(language.model.parameters(), MAX_NORM)
    optimizer.step()
    optimizer.zero_grad()
    return episodes, advantages, loss.item()


# ---- a model that has seen the expert, to begin with


def expert_play(env: gymnasium.Env, task: mt.Task) -> list[str]:
    """Observation, action, observation, action ... of the expert."""
    text, _ = env.reset(seed=0, options={"task": task.id})
    exchanges, ended = list[str](), False
    while not ended:
        action = env.get_wrapper_attr("expert")()
        exchanges += [text, action]
        text, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    return exchanges


def demonstrations(language: LanguageModel, spoken: Sequence[list[str]]) -> list[Episode]:
    """The expert's exchanges, as if the model had said them."""
    template, episodes = language.template, list[Episode]()
    for exchanges in spoken:
        episode = Episode("")
        for observation, action in zip(exchanges[::2], exchanges[1::2], strict=True):
            bridge = template.bridge(observation, ended=True) if episode.ids else template.opening("", observation)
            prompt = episode.ids + bridge
            ids = template.reply(action)
            episode.turns.append(Turn("", 0.0, slice(len(prompt), len(prompt) + len(ids))))
            episode.ids = prompt + ids
        episodes.append(episode)
    return episodes


def imitate(language: LanguageModel, episodes: Sequence[Episode], updates: int) -> None:
    """Learn to say what was said in the episodes: cross-entropy over the replies."""
    optimizer = torch.optim.AdamW(language.model.parameters(), lr=4e-3, weight_decay=0.0)
    for update in range(updates):
        rng = generator("imitate", update)
        batch = [episodes[i] for i in rng.choice(len(episodes), size=8, replace=False)]
        ids_BT = pad_sequence([torch.tensor(episode.ids) for episode in batch], batch_first=True, padding_value=0)
        labels_BT = torch.full_like(ids_BT, -100)
        for row, episode in enumerate(batch):
            for turn in episode.turns:
                labels_BT[row, turn.span] = ids_BT[row, turn.span]
        language.model(ids_BT, labels=labels_BT).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main(updates: int = 80, steps: int = 20) -> None:
    torch.set_num_threads(1)
    env = mt.make("manyturn/Maze-v0", difficulty="easy")
    train = env.get_wrapper_attr("tasks")("train")
    spoken = [expert_play(env, train[i]) for i in range(400)]
    words = [text for exchanges in spoken for text in exchanges]
    language = build_tiny(words, seed=0, max_context=512, device=torch.device("cpu"))
    imitate(language, demonstrations(language, spoken), updates)
    optimizer = torch.optim.AdamW(language.model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    for step in range(1, steps + 1):
        tasks = [train[int(i)] for i in generator("tasks", 0, step).choice(len(train), size=TASKS, replace=False)]
        episodes, _, loss = one_step(language, optimizer, env, tasks, step)
        success = np.mean([episode.success for episode in episodes])
        turns = np.mean([len(episode.turns) for episode in episodes])
        print(f"step {step:2}  success {success:.2f}  turns {turns:4.1f}  loss {loss:+.4f}", flush=True)


if __name__ == "__main__":
    main()
