"""TRL's GRPOTrainer trains a tiny model in our maze, with GiGPO's credit for each of its tokens.

    pip install 'manyturn[train]' trl==1.16.0
    python examples/trainers/trl_maze.py --seed 0

``manyturn train`` imitates demonstrations for some updates and leaves a Hugging Face folder. TRL loads it, this file
plays the episodes, ``manyturn.credit`` says what each token earned, and TRL does the rest. ``manyturn evaluate`` plays
200 held-out mazes before and after.
"""

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig

import manyturn as mt
import manyturn.credit as mc
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.integrations.trl import CreditGRPOTrainer

MAZE = "manyturn/Maze-v0"
AGENT = {"format": "free_text", "instructions": False, "max_context": 512}
WORDS = 8  # tokens of a reply
CREDIT = mc.CreditConfig(
    rewards=({"name": "invalid_penalty", "coef": 0.1, "flag": "understood"},),
    advantage={"name": "gigpo", "mode": "mean_std_norm", "gamma": 0.95},
)


@dataclass
class Played:
    """An episode while it is played: all tokens so far, and of each turn what credit needs."""

    env: Any
    ids: list[int]
    info: dict[str, Any]
    begins: int = 0
    mask: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    anchors: list[Any] = field(default_factory=list)
    understood: list[bool] = field(default_factory=list)
    over: bool = False
    truncated: bool = False

    def turn(self, reply: list[int], chat: ChatTemplate) -> None:
        """Say a reply, and hear what comes of it."""
        self.anchors.append(self.info["anchor"])
        text, reward, terminated, self.truncated, self.info = self.env.step(chat.decode(reply))
        self.rewards.append(reward)
        self.understood.append(self.info["understood"])
        self.over = terminated or self.truncated
        heard = [] if self.over else chat.bridge(text, ended=reply[-1] in chat.end_ids)
        self.ids += reply + heard
        self.mask += [1] * len(reply) + [0] * len(heard)


def play(prompts: list[str], trainer: Any) -> dict[str, Any]:
    """An episode for each prompt, which is a maze's seed; all of them take their turns side by side."""
    chat = ChatTemplate(trainer.processing_class)
    episodes = []
    for prompt in prompts:
        env: Any = mt.make(MAZE)
        text, info = env.reset(seed=int(prompt))
        opening = chat.opening("", text)
        episodes.append(Played(env, opening, info, len(opening)))
    while open_now := [episode for episode in episodes if not episode.over]:
        for episode, reply in zip(open_now, replies(trainer.model, [e.ids for e in open_now], chat), strict=True):
            episode.turn(reply, chat)
    return {
        "prompt_ids": [e.ids[: e.begins] for e in episodes],
        "completion_ids": [e.ids[e.begins :] for e in episodes],
        "env_mask": [e.mask for e in episodes],
        "logprobs": None,
        "rollout": [
            mc.Rollout(
                group=e.info["task"],
                rewards=e.rewards,
                anchors=e.anchors,
                understood=e.understood,
                truncated=e.truncated,
            )
            for e in episodes
        ],
    }


def replies(model: Any, contexts: list[list[int]], chat: ChatTemplate) -> list[list[int]]:
    """A reply to each context, drawn by the model."""
    width = max(map(len, contexts))
    padded = torch.tensor([[chat.end_id] * (width - len(ids)) + ids for ids in contexts])
    mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in contexts])
    drawn = model.generate(
        input_ids=padded,
        attention_mask=mask,
        max_new_tokens=WORDS,
        do_sample=True,
        top_k=0,
        eos_token_id=sorted(chat.end_ids),
        pad_token_id=chat.end_id,
    )
    replies = []
    for ids in drawn[:, width:].tolist():
        ends = next((place for place, token in enumerate(ids, 1) if token in chat.end_ids), len(ids))
        replies.append(ids[:ends])
    return replies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20, help="of 64 episodes")
    parser.add_argument("--out", type=Path, default=Path("trl-maze"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    short = {"warmup.check_every": 100, "warmup.until_success": 0.3, "rollout.tasks": 1, "evaluation.limit": 1}
    mt.train(recipe="quickstart", out=str(options.out / "warm"), seed=options.seed, steps=1, **short)
    warm = options.out / "warm" / "checkpoints" / "step_000000" / "model"
    trainer = CreditGRPOTrainer(
        model=str(warm),
        credit=CREDIT,
        rollout_func=play,
        train_dataset=Dataset.from_dict({"prompt": [str(number) for number in range(100_000)]}),
        args=GRPOConfig(
            str(options.out / "trl"),
            seed=options.seed,
            max_steps=options.steps * 4,
            num_generations=8,
            per_device_train_batch_size=16,
            steps_per_generation=4,
            max_completion_length=480,
            learning_rate=5e-4,
            lr_scheduler_type="constant",
            epsilon_high=0.28,
            bf16=False,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            logging_steps=4,
        ),
    )
    trainer.train()
    trainer.save_model(str(options.out / "model"))
    before = mt.evaluate(str(warm), limit=200, out=str(options.out / "before"))
    sampling = {"temperature": 1.0, "max_tokens": WORDS}
    model = str(options.out / "model")
    after = mt.evaluate(model, MAZE, limit=200, out=str(options.out / "after"), agent=AGENT, sampling=sampling)
    gained = mt.compare(str(options.out / "before"), str(options.out / "after"))["comparisons"][0]["success"]
    means = {name: one.summary["success"]["mean"] for name, one in (("before", before), ("after", after))}
    print(json.dumps({"seed": options.seed, "steps": options.steps, **means, **gained}))


if __name__ == "__main__":
    main()
