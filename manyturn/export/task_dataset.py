"""The tasks of an environment as a data set: a card, and JSON lines for each split, as ``datasets.load_dataset`` reads.

A row is how a task begins. The rules are not in it: whoever plays it makes the environment, or asks a server of ours.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import manyturn
from manyturn.agents.trajectories.hub_card import ENVIRONMENT, header
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.tasks.panel import Panel
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.export.exported_env import PANEL, episode_seed

_CARD = """{header}

# Tasks of {env}

Written by manyturn {version}. Each row is a task and how its episode begins. The rules of the environment are not in
the rows, and no answers: to play a task, make the environment.

```python
import manyturn as mt

env = mt.make("{env}")  # in this folder, with the args of world.json, if it has any
observation, info = env.reset(seed=row["seed"], options={{"task": row["task"]}})
```

{table}

| column | |
|---|---|
| `prompt` | the messages of the first turn: what the agent is told once, and the first observation |
| `task`, `split` | the task's name and its split, as in manyturn |
| `content` | hash of all that determines the problem: another hash is another problem |
| `seed` | decides what is random in the episode; the first observation is that of this seed |
| `difficulty`, `tags` | of the task, where it has them |

The files `*{panel}` pin the tasks for `manyturn evaluate --panel`, and `world.json` has the environment's arguments.
"""
Rows = Mapping[str, list[dict[str, Any]]]


def rows_of(handle: EnvHandle, panels: Mapping[str, Panel], begun: bool = True) -> Rows:
    """The rows of each split.

    Args:
        begun: begin each task, whose first observation is the last message; else that message is empty.

    Raises:
        EnvError: a task cannot be begun.
    """
    system = [{"role": "system", "content": handle.instructions}] if handle.instructions else []
    rows: dict[str, list[dict[str, Any]]] = {}
    for split, panel in panels.items():
        rows[split] = []
        for task in panel.find(handle.tasks(split)):
            seed = episode_seed(task)
            read = {"role": "user", "content": handle.reset(task, seed).observation if begun else ""}
            about = {"task": task.id, "split": split, "content": task.content, "seed": seed}
            labels = {"difficulty": task.difficulty, "tags": list(task.tags)}
            rows[split].append({"prompt": [*system, read], **about, **labels})
    return rows


def write_dataset(out: Path, env: str, panels: Mapping[str, Panel], rows: Rows) -> None:
    """Write card and rows into a folder that is there."""
    write_rows(out, rows)
    files = {split: f"data/{split}.jsonl" for split in panels}
    tags = (ENVIRONMENT, "manyturn", "agents", "reinforcement-learning")
    about = header(f"Tasks of {env}", tags, sum(map(len, rows.values())), files)
    card = _CARD.format(header=about, env=env, version=manyturn.__version__, table=panel_table(panels), panel=PANEL)
    (out / "README.md").write_text(card, encoding="utf-8")


def panel_table(panels: Mapping[str, Panel]) -> str:
    """The splits of an export, as Markdown."""
    lines = [f"| {split} | {len(panel)} | `{panel.hash}` |" for split, panel in panels.items()]
    return "\n".join(["| split | tasks | hash |", "|---|---|---|", *lines])


def write_rows(out: Path, rows: Rows) -> None:
    """Write JSON lines for each split into a folder that is there."""
    (out / "data").mkdir()
    for split, lines in rows.items():
        text = masked("".join(json.dumps(line) + "\n" for line in lines))
        (out / "data" / f"{split}.jsonl").write_text(text, encoding="utf-8")
