"""Figures that contradict each other, or say less than they seem to, are explained where they are shown."""

import asyncio

import pytest

from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.evaluation.remarks import remarks
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS
from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.registration.id_registration import register
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.local.seats import open_seats


class Silent(Maze):
    """A maze that lists no commands."""

    def admissible(self):
        return None


register("tests/Silent-v0", Silent)


def found(policy, env="manyturn/Maze-v0"):
    async def run():
        async with open_seats(env) as seats:
            panel = make_panel(seats.tasks("test"), env, "test", 2)
            return await evaluate(seats, SCRIPTS[policy], EvaluationPlan(panel, repeats=1, seed=0, max_turns=9))

    return asyncio.run(run()).summary


def test_nothing_is_said_where_the_figures_speak_for_themselves():
    assert remarks(found("expert")) == remarks(found("random")) == []


@pytest.mark.parametrize(("rate", "lines"), [(0.0004, 0), (0.0006, 1)])
def test_a_share_that_is_printed_as_nothing_is_not_remarked_on(rate, lines):
    summary = found("expert")
    assert len(remarks({**summary, "fault_rates": {**summary["fault_rates"], "empty": rate}})) == lines


def test_a_random_policy_without_commands_is_no_floor():
    summary = found("random", "tests/Silent-v0")
    invalid, told = remarks(summary)
    assert "every action is invalid: the environment says so" in invalid
    assert told.startswith("random had nothing to choose from: the environment lists no admissible commands")
    assert remarks(found("expert", "tests/Silent-v0")) == []


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            AgentConfig(format="tagged"),
            "invalid and yet successful: no reply had the tags <action>, so each",
        ),
        (AgentConfig(format="tool_call"), "no reply had the form of agent.format tool_call, so each was played"),
        (AgentConfig(format="free_text"), "the environment says so of each, and yet the goal is reached"),
    ],
)
def test_success_with_every_reply_invalid_is_named_as_what_it_is(config, told):
    agent = config.model_dump(mode="json")
    summary = {**found("expert"), "invalid_action_rate": 1.0, "agent": agent}
    [remark] = remarks(summary)
    assert told in remark
    if config.format.name != "free_text":
        assert "give --agent.format free_text" in remark


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (
            1.0,
            "no reply had the tags <action>; give --agent.format free_text if the policy answers with the action alone",
        ),
        (0.4, "40.0% of the replies lacked the tags <action>, and the environment refused what the others held"),
        (0.0, "the replies had the tags <action>, and the environment refused what they held"),
    ],
)
def test_why_every_reply_is_invalid_is_known_and_said(broken, told):
    """Two causes in one sentence left the user to find out which."""
    agent = AgentConfig(format="tagged").model_dump(mode="json")
    failed = {**found("random"), "invalid_action_rate": 1.0, "agent": agent, "broken_format_rate": broken}
    assert remarks({**failed, "success": {"mean": 0.0}}) == [f"every action is invalid: {told}"]


def test_cut_replies_name_the_option_that_cuts_them():
    summary = {**found("expert"), "cut_reply_rate": 0.25, "sampling": {"max_tokens": 16, "temperature": 1.0}}
    assert remarks(summary) == [
        "25.0% of the replies were cut at sampling.max_tokens = 16: give --sampling.max-tokens more"
    ]
