"""The page docs/papers.md: each paper that a recipe names, by title and number, so that an acronym alone finds none.

python tests/manyturn/pages/papers_page.py > docs/papers.md
"""

import re
from importlib import import_module
from pathlib import Path

from manyturn.cli.pages.method_pages import Piece, RecipeHead, pieces
from manyturn.recipes import methods

ROOT = Path(__file__).parents[3]
AGAIN = "docs/papers.md says something else: make it again, python tests/manyturn/pages/papers_page.py > docs/papers.md"
LEARNS = "tests/trainers/test_learning_recipes.py"
OTHER_NAMES = {
    **dict.fromkeys(("turn_dpo", "step_dpo", "copg", "agent_q"), "dpo"),
    "forks": "c3_baselines",
    "loop": "loop",
    "grpo": "grpo",
    "entropy_balanced": "aepo_loss_thirdparty",
}
TITLES = {
    "1506.02438": "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
    "1707.06347": "Proximal Policy Optimization Algorithms",
    "2305.18290": "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
    "2402.03300": "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    "2402.14740": "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    "2406.18629": "Step-DPO: Step-wise Preference Optimization for Long-chain Reasoning of LLMs",
    "2406.19185": "Contrastive Policy Gradient: Aligning LLMs on sequence-level scores",
    "2408.07199": "Agent Q: Advanced Reasoning and Learning for Autonomous AI Agents",
    "2410.08146": "Rewarding Progress: Scaling Automated Process Verifiers for LLM Reasoning",
    "2501.03262": "REINFORCE++",
    "2501.12599": "Kimi k1.5: Scaling Reinforcement Learning with LLMs",
    "2502.01600": "Reinforcement Learning for Long-Horizon Interactive LLM Agents",
    "2503.01491": "What's Behind PPO's Collapse in Long-CoT? Value Optimization Holds the Secret",
    "2503.14286": "Tapered Off-Policy REINFORCE",
    "2503.14476": "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    "2503.20783": "Understanding R1-Zero-Like Training: A Critical Perspective",
    "2504.03380": "Online Difficulty Filtering for Reasoning Oriented Reinforcement Learning",
    "2504.09710": "DUMP: Automated Distribution-Level Curriculum Learning for RL-based LLM Post-training",
    "2504.20073": "RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn Reinforcement Learning",
    "2505.10978": "Group-in-Group Policy Optimization for LLM Agent Training",
    "2505.11821": "Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment",
    "2505.12346": "SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware Policy Optimization",
    "2505.14970": "Self-Evolving Curriculum for LLM Reasoning",
    "2505.16282": "ARPO: End-to-End Policy Optimization for GUI Agents with Experience Replay",
    "2505.20732": "SPA-RL: Reinforcing LLM Agents via Stepwise Progress Attribution",
    "2505.23585": "On-Policy RL with Optimal Reward Baseline",
    "2506.03106": "Critique-GRPO: Advancing LLM Reasoning with Natural Language and Numerical Feedback",
    "2506.01347": "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    "2506.01939": "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective RL for LLM Reasoning",
    "2506.20520": "Asymmetric REINFORCE for off-Policy Reinforcement Learning: Balancing positive and negative rewards",
    "2506.07527": "Learning What Reinforcement Learning Can't: Interleaved Online Fine-Tuning for Hardest Questions",
    "2506.13585": "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    "2507.04632": "MoPPS: Can Prompt Difficulty be Online Predicted for Accelerating RL Finetuning",
    "2507.10628": "GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning",
    "2507.16806": "Beyond Binary Rewards: Training LMs to Reason about Their Uncertainty",
    "2507.18071": "Group Sequence Policy Optimization",
    "2507.19849": "Agentic Reinforced Policy Optimization",
    "2507.20673": "Geometric-Mean Policy Optimization",
    "2508.02298": "CAPO: Towards Enhancing LLM Reasoning through Generative Credit Assignment",
    "2508.03905": "Sotopia-RL: Reward Design for Social Intelligence",
    "2508.10548": "Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards",
    "2509.08755": "AgentGym-RL: Training LLM Agents for Long-Horizon Decision Making through Multi-Turn RL",
    "2509.09265": "Harnessing Uncertainty: Entropy-Modulated Policy Gradients for Long-Horizon LLM Agents",
    "2509.13232": "Single-stream Policy Optimization",
    "2509.19199": "Agentic Reinforcement Learning with Implicit Step Rewards",
    "2509.22576": "EPO: Entropy-regularized Policy Optimization for LLM Agents Reinforcement Learning",
    "2509.25666": "NuRL: Nudging the Boundaries of LLM Reasoning",
    "2509.24203": "Group-Relative REINFORCE Is Secretly an Off-Policy Algorithm: Demystifying Some Myths About GRPO "
    "and Its Friends",
    "2509.25598": "Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic Tasks",
    "2510.00911": "RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM Post-Training",
    "2510.01135": "Prompt Curriculum Learning for Efficient LLM Post-Training",
    "2510.06214": "Stratified GRPO: Handling Structural Heterogeneity in Reinforcement Learning of LLM Search Agents",
    "2510.08141": "Arbitrary Entropy Policy Optimization",
    "2510.14545": "Agentic Entropy-Balanced Policy Optimization",
    "2510.14967": "Information Gain-based Policy Optimization",
    "2510.16907": "VAGEN: Reinforcing World Model Reasoning for Multi-Turn VLM Agents",
    "2510.18855": "Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model",
    "2510.19807": "Scaf-GRPO: Scaffolded Group Relative Policy Optimization for Enhancing LLM Reasoning",
    "2511.20347": "Soft Adaptive Policy Optimization",
    "2512.17008": "Turn-PPO",
    "2601.06021": "Chaining the Evidence: Robust RL for Deep Search Agents with Citation-Aware Rubric Rewards",
    "2601.22491": "Sweet Spot Learning",
    "2608.05987": "AgentOPSD: Recursive Self-Distillation for Agentic Reinforcement Learning",
    "OpenReview U3yTQonq10": "Verlog: A Multi-turn RL Framework for LLM Agents",
    "2602.22817": "Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks",
    "2604.11037": "RTMC: Step-Level Credit Assignment via Rollout Trees",
    "2605.26684": "Beyond Trajectory-Level Attribution: Graph-Based Credit Assignment for Agentic RL (GraphGPO)",
    "2606.22995": "Group-Graph Policy Optimization for Long-Horizon Agentic Reinforcement Learning",
    "2607.14171": "Branching Policy Optimization: Sandbox-Native Language Agent Reinforcement Learning",
}
# What the docstring of a shared part does not say of a recipe's paper.
OF_RECIPES = {
    ("relift", "2506.07527"): "theirs gathers 128 such tasks for an update, with solutions of a larger model",
    ("rec", "2509.24203"): "ratios of full sequences are left out, and RED's weights and choice of samples",
    ("opmd", "2501.12599"): "theirs squares reward less log-ratio of a full reply; here each token has its own term",
    ("opmd", "2509.24203"): "none: REP-OPMD's term of each token",
    ("asymre", "2506.20520"): "theirs has a mean of rewards less the shift as baseline; here the advantage has its own",
    ("asymre", "2509.24203"): "none: REP-AsymRE's term of each token",
    ("starpo-s", "2504.20073"): "the critic is linear in the policy's last hidden states, theirs is a second model",
    ("tis", "none"): "none: the weight of each token is cut off at 2, as theirs",
    ("icepop", "2510.18855"): "none: tokens count by their ratio from 0.5 to 5, their bounds, and others count nothing",
    ("verlog", "2503.01491"): "VC-PPO has one discount for all tokens and turns; here the critic's lambda is from it",
}
_TREES = "Tree-GRPO adds a comparison over all episodes of the task and divides both by standard deviations"
_VINE = "theirs takes values by continuations of each step of a solution; here branches are of turns"
# Stages that no recipe names: number -> title, module, and what differs where the docstring is of several papers.
OF_STAGES = {
    "2410.01679": ("VinePPO: Refining Credit Assignment in RL Training of LLMs", "advantages.forks", _VINE),
    "2410.15115": ("On Designing Effective RL Reward at Training Time for LLM Reasoning", "rewards.clip_delta"),
    "2509.21240": ("Tree Search for LLM Agent Reinforcement Learning (Tree-GRPO)", "advantages.forks", _TREES),
    "2601.20802": ("Reinforcement Learning via Self-Distillation (SDPO)", "rewards.opsd"),
    "2603.06859": (
        "Contextual Counterfactual Credit Assignment for Multi-Agent Reinforcement Learning in LLM Collaboration (C3)",
        "advantages.forks",
        "C3 replaces messages of cooperating models",
    ),
    "2607.05804": ("TurnOPD", "rewards.opsd"),
}
# Methods of manyturn improve: number -> title and module; they have no recipe, since no weight changes.
OF_WRAPPERS = {
    "2308.02151": ("Retroformer: Retrospective Large Language Agents with Policy Gradient Optimization", "reflector"),
}
# Environments and wrappers of tools: number -> title, id or name, class, folder of tests, and what differs.
OF_WORLDS = {
    "2404.15269": (
        "Aligning LLM Agents by Learning Latent Preference from User Edits (PRELUDE)",
        "`manyturn/Drafts-v0`",
        "drafts.env.Drafts",
        "tests/envs/drafts",
        "a rule edits in place of a language model, and preferences are of form only",
    ),
    "2503.23157": (
        "Reasoning-SQL: Reinforcement Learning with SQL Tailored Partial Rewards for Reasoning-Enhanced Text-to-SQL",
        "`manyturn/SQL-v0`",
        "sql.env.SQL",
        "tests/envs/sql",
        "schemas and questions are generated and must be explored; no part of the reward asks a language model",
    ),
    "2504.00907": (
        "Grounding Multimodal LLMs to Embodied Agents that Ask for Help with Reinforcement Learning (Ask-to-Act)",
        "`manyturn/Clarify-v0`",
        "clarify.env.Clarify",
        "tests/envs/clarify",
        "things on a shelf in text, and the value of each question is exact",
    ),
    "2504.11703": (
        "Progent: Programmable Privilege Control for LLM Agents",
        "the wrapper `privileges`",
        "tools.wrappers.privileges.Privileges",
        "tests/envs/tools",
        "patterns, lists and words of the request decide; no model writes or updates the list",
    ),
    "2505.02847": (
        "Sentient Agent as a Judge: Evaluating Higher-Order Social Cognition in Large Language Models (SAGE)",
        "`manyturn/Talk-Support-v0`",
        "talk.support.feelings",
        "tests/envs/talk/test_support.py",
        "a list of phrases decides what a user feels, in place of a language model",
    ),
    "2507.03112": (
        "RLVER: Reinforcement Learning with Verifiable Emotion Rewards for Empathetic Agents",
        "`manyturn/Talk-Support-v0`, recipe `rlver-tiny`",
        "talk.support.env.Support",
        "tests/envs/talk/test_support.py",
        "rules decide what a user feels, in place of a language model, and no format asks to think first",
    ),
    "2512.13159": (
        "SpeakRL: Synergizing Reasoning, Speaking, and Acting in Language Models with Reinforcement Learning",
        "`manyturn/Clarify-v0`",
        "clarify.env.Clarify",
        "tests/envs/clarify",
        "a question has a price and an exact value, and no model judges it",
    ),
}
OF_EXPERIENCE = {
    "2303.11366": ("Reflexion: Language Agents with Verbal Reinforcement Learning", "reflexion"),
    "2508.16153": ("Memento: Fine-tuning LLM Agents without Fine-tuning LLMs (AgentFly)", "cases"),
    "2510.08191": ("Training-Free Group Relative Policy Optimization", "training_free_grpo"),
}
# Searches of manyturn evaluate: number -> title and module; they have no recipe either.
OF_SEARCHES = {
    "1510.03055": ("A Diversity-Promoting Objective Function for Neural Conversation Models", "values.rerank"),
    "2001.09977": ("Towards a Human-like Open-Domain Chatbot", "values.likelihood"),
    "2110.14168": ("Training Verifiers to Solve Math Word Problems", "methods.best_of_n"),
    "2305.10601": ("Tree of Thoughts: Deliberate Problem Solving with Large Language Models", "methods.beam"),
    "2310.04406": (
        "Language Agent Tree Search Unifies Reasoning, Acting, and Planning in Language Models",
        "methods.tree",
    ),
}
HEAD = """# Papers and recipes

An acronym is not a method: AEPO, ARPO, EPO, MPO and SPO each name two papers. So look a method up by its paper.
This page is made from the recipes and the docstrings of what they name, and a test compares it
(`python tests/manyturn/pages/papers_page.py > docs/papers.md`). A recipe of several papers has a row for each. Numbers
of authors, or of others where the name of the file says so, are in [tests/golden](../tests/golden/README.md). Rows at
the end are of stages without a recipe, of wrappers, of environments, of methods of
[`manyturn improve`](experience.md), and of [searches](search.md).

| paper | arXiv | recipe | what differs | test |
|---|---|---|---|---|
"""


def page() -> str:
    """The page's text."""
    rows = [row for name in methods() for row in rows_of(name)]
    rows = [*sorted(rows, key=str.lower), *map(row_of_stage, OF_STAGES), *map(row_of_wrapper, OF_WRAPPERS)]
    rows += [*map(row_of_world, OF_WORLDS), *map(row_of_experience, OF_EXPERIENCE), *map(row_of_search, OF_SEARCHES)]
    return HEAD + "".join(f"{row}\n" for row in rows)


def row_of_stage(number: str) -> str:
    """The table's row of a paper that a stage follows, without a recipe."""
    title, module, *difference = OF_STAGES[number]
    kind, name = module.split(".")
    part = Piece(f"credit.{kind}", name, import_module(f"manyturn.trainers.credit.{module}").__doc__ or "", ())
    assert number in part.text, f"{module} does not name {number}"
    tests = ", ".join(f"`{test}`" for test in tests_of([part]) if test != LEARNS) or "`tests/trainers/credit`"
    return f"| {title} | {number} | none: the stage `{name}` | {''.join(difference) or differs([part])} | {tests} |"


def row_of_wrapper(number: str) -> str:
    """The table's row of a paper that a wrapper follows."""
    title, name = OF_WRAPPERS[number]
    text = import_module(f"manyturn.envs.contract.wrappers.{name}").__doc__ or ""
    part = Piece("env.wrappers", name, text, ())
    assert number in part.text, f"{name} does not name {number}"
    tests = f"`tests/envs/contract/test_{name}.py`, `tests/trainers/run/setup/test_{name}_runs.py`"
    return (
        f"| {title} | {number} | none: the wrapper `{name}`, as in `retroformer-tiny` | {differs([part])} | {tests} |"
    )


def row_of_world(number: str) -> str:
    """The table's row of a paper that an environment, or a wrapper of tools, is in the manner of."""
    title, name, place, tests, difference = OF_WORLDS[number]
    module, _, last = place.rpartition(".")
    module = place if last.islower() else module
    source = import_module(f"manyturn.envs.{module}")
    text = source.__doc__ if last.islower() else getattr(source, last).__doc__
    assert number in " ".join((text or "").split()), f"{place} does not name {number}"
    return f"| {title} | {number} | none: {name} | {difference} | `{tests}` |"


def row_of_experience(number: str) -> str:
    """The table's row of a paper that a method of improvement follows."""
    title, name = OF_EXPERIENCE[number]
    text = import_module(f"manyturn.agents.experience.methods.{name}").__doc__ or ""
    part = Piece("method", name, text, ())
    assert number in part.text, f"{name} does not name {number}"
    test = "`tests/agents/experience/test_methods.py`"
    return f"| {title} | {number} | none: `improve --method {name}` | {differs([part])} | {test} |"


def row_of_search(number: str) -> str:
    """The table's row of a paper that a search, or its value of a place, follows."""
    title, module = OF_SEARCHES[number]
    part = Piece("search", module, import_module(f"manyturn.agents.search.{module}").__doc__ or "", ())
    assert number in part.text, f"{module} does not name {number}"
    room, name = module.split(".")
    option = "search" if room == "methods" else "search.value"
    test = "`tests/manyturn/test_search.py`"
    return f"| {title} | {number} | none: `evaluate --{option} {name}` | {differs([part])} | {test} |"


def rows_of(name: str) -> list[str]:
    """The table's rows of a recipe."""
    paper, parts = RecipeHead.of(name).paper, pieces(name)
    numbers = re.findall(r"(?:arXiv )?(\d{4}\.\d{5}|OpenReview \w+)", paper)
    if paper.startswith("none"):
        numbers = []
    papers = [(TITLES[number], number) for number in numbers] or [(paper, "none")]
    rows = []
    for title, number in papers:
        # Of several papers each has a part of its own, which names it.
        shown = [part for part in parts if part.place.startswith("credit.") or part.place == "objective.epo"]
        own = [part for part in shown if len(papers) > 1 and number in source(part)] or parts
        tests = ", ".join(f"`{test}`" for test in tests_of(own))
        rows.append(f"| {title} | {number} | `{name}` | {OF_RECIPES.get((name, number)) or differs(own)} | {tests} |")
    return rows


def source(part: Piece) -> str:
    """The passage of a part's text that names papers and code."""
    return part.text.partition("\nSource: ")[2].partition("\n\n")[0]


def differs(parts: list[Piece]) -> str:
    """The first sentence about differences in the part that tells the recipe from others."""
    told = [part.text.partition("\nDifferences: ")[2].partition("\n\n")[0] for part in ordered(parts)]
    text = " ".join(next((one for one in told if one), "none that is known").split())
    return re.split(r"(?<=[a-z)`\"])\. (?=[A-Z`\"])", text)[0].rstrip(".").replace("|", "\\|")


def tests_of(parts: list[Piece]) -> list[str]:
    """Golden files of the parts' names, and the test that each recipe learns."""
    stems = sorted(path.stem for path in (ROOT / "tests/golden").glob("*.json"))
    names = [part.name or part.place.rpartition(".")[2] for part in ordered(parts)]
    named = [OTHER_NAMES.get(name, name) for name in names if name != "clip"]
    found = [stem for name in named for stem in stems if stem == name or stem.startswith(f"{name}_")]
    return [*dict.fromkeys(f"tests/golden/{stem}.json" for stem in found), LEARNS]


def ordered(parts: list[Piece]) -> list[Piece]:
    """The parts, those that most recipes share last."""
    shared = ("invalid_penalty", "clip", "grpo")
    own = [part for part in parts if part.name and part.name not in shared]
    rest = [part for part in parts if not part.name and part.place not in ("objective.kl", "objective.entropy")]
    return [*own, *rest, *(part for part in parts if part.name in shared)]


if __name__ == "__main__":
    print(page(), end="")
