"""Options of a judge: who judges, what, by which criteria, and what it may cost."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from manyturn.agents.experience.budget import BudgetConfig
from manyturn.agents.play.endpoint.options import EndpointSampling, NamedHeaders
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.users.endpoint.protocols.registry import ENDPOINT_WORD, endpoint_model
from manyturn.trainers.credit.groups.draws import DRAWER
from manyturn.trainers.play.judges.rubric import CriterionConfig, VoteRule
from manyturn.trainers.play.judges.rule import RuleConfig
from manyturn.trainers.play.judges.rules.expert import ExpertRuleConfig

SCRIPTED = "scripted"
_RIGHT = CriterionConfig(
    name="right", rule=ExpertRuleConfig(), question="Was this the right thing to do, by what the agent could know?"
)


class JudgeConfig(Options):
    """Verdicts on what has been played, before credit is given. Validation and evaluations are not judged."""

    by: str = Field(default=SCRIPTED, pattern=rf"^({SCRIPTED}|{ENDPOINT_WORD})$")
    """Judge: scripted, by the rules of the criteria, or the model of an endpoint: openai:MODEL,
    openai-responses:MODEL or anthropic:MODEL."""
    verdicts: Literal["turn", "episode"] = "turn"
    """A verdict on each turn, or one on the episode, which its last turn is paid."""
    part: str = Field(default="judge", pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """Part of the reward that the verdicts are, from 0 to 1. Verdicts on turns need a stage of credit that names it."""
    criteria: tuple[CriterionConfig, ...] = Field(default=(_RIGHT,), min_length=1)
    """The rubric. Default: one criterion, agreement with the environment's expert."""
    votes: int = Field(default=1, ge=1)
    """Times that each episode is judged, with the criteria in another order each time."""
    vote: VoteRule = "mean"
    """Verdict of several votes: their mean, that of most, or a fault only where all votes find one."""
    noise: float = Field(default=0.0, ge=0, lt=1)
    """Share of a scripted judge's verdicts that are turned round, to learn what a method makes of a poor judge."""
    length: Literal["as_judged", "regressed"] = "as_judged"
    """Leave in verdicts what they owe to the length of the replies, or take out what a straight line in its logarithm
    explains over the episodes that are judged together."""
    longest: int = Field(default=4000, ge=16)
    """Characters of a reply or an observation that an endpoint is shown; the middle of a longer one is left out."""
    readings: int = Field(default=2, ge=1)
    """Times that an endpoint is asked for a verdict that can be read; later ones say what is wrong with the last."""
    unreadable: Literal["error", "abstain"] = "error"
    """What follows where none can: the run stops, or the judge abstains. An episode without a verdict leaves its group,
    and ``judge_abstained`` counts it."""
    min_agreement: float = Field(default=0.6, ge=0, le=1)
    """Least share of pairs of a success and a failure of the first step in which the success has the better verdict,
    ties counting half; 0.5 is chance. The run stops before it learns from a judge below. 0 trusts it unmeasured."""
    sampling: EndpointSampling | None = None
    """How an endpoint's verdicts are drawn. Unset: with temperature 0 for one vote, and 1 for several."""
    endpoint: NamedHeaders | None = None
    """Where the endpoint is, how patient to be, and its prices."""
    budget: BudgetConfig | None = None
    """Limits of what an endpoint's verdicts may cost, over the run. Unset: none."""

    @field_validator("part")
    @classmethod
    def _is_a_part_of_its_own(cls, part: str) -> str:
        if part == OUTCOME:
            raise ValueError(f"{OUTCOME!r} is what the environment pays: name another part")
        return part

    @model_validator(mode="after")
    def _criteria_can_be_decided(self) -> Self:
        names = [criterion.name for criterion in self.criteria]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two criteria are called {twice!r}: rename one")
        for criterion in self.criteria:
            if criterion.gate and criterion.weight != 1:
                raise ValueError(f"weight of criterion {criterion.name!r} has no effect on a gate: leave it out")
            if criterion.rule is None and (self.is_scripted or not criterion.question):
                fix = "give rule" if self.is_scripted else "give question, or rule"
                raise ValueError(f"nothing decides criterion {criterion.name!r} of the judge {self.by}: {fix}")
        if not self.is_scripted and not self.questions:
            raise ValueError(f"no criterion has a question for {self.by}: give one, or leave by out")
        return self

    @model_validator(mode="after")
    def _options_are_of_the_judge(self) -> Self:
        of_endpoints = ("longest", "readings", "unreadable", "sampling", "endpoint", "budget")
        for name in of_endpoints if self.is_scripted else ("noise",):
            if getattr(self, name) != type(self).model_fields[name].default:
                fix = "give by = 'openai:MODEL', or leave it out" if self.is_scripted else "leave it out"
                raise ValueError(f"{name} has no effect on the judge {self.by}: {fix}")
        if self.is_scripted and self.votes > 1 and not self.noise:
            raise ValueError(f"votes = {self.votes} has no effect on rules, which say the same each time: leave it out")
        if self.vote != "mean" and self.votes == 1:
            raise ValueError(f"vote = {self.vote!r} has no effect with votes = 1: raise votes, or leave it out")
        return self

    @property
    def is_scripted(self) -> bool:
        return self.by == SCRIPTED

    @property
    def model(self) -> tuple[str, str]:
        """The endpoint's protocol and model."""
        return endpoint_model(self.by)

    @property
    def questions(self) -> tuple[CriterionConfig, ...]:
        """The criteria that an endpoint decides."""
        return () if self.is_scripted else tuple(one for one in self.criteria if one.question)

    @property
    def ruled(self) -> dict[str, RuleConfig]:
        """Name of each criterion that a rule decides -> the rule."""
        by_endpoint = {one.name for one in self.questions}
        return {one.name: one.rule for one in self.criteria if one.name not in by_endpoint}

    @property
    def needs_expert(self) -> bool:
        """True if a rule asks the environment's expert."""
        return any(rule.needs_expert for rule in self.ruled.values())

    def _reader(self, run: Any) -> Any:
        """The first stage of credit that names the part, or None."""
        stages = (*run.credit.rewards, run.credit.advantage)
        return next((stage for stage in stages if self.part in stage.named_parts()), None)

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        advantage, reader = run.credit.advantage, self._reader(run)
        if run.rollout.branching is not None and (reader is not advantage or DRAWER not in reader.uses):
            return "[judge] would judge what a branch repeats twice, with rollout.branching: leave one of them out"
        if run.roles or (env is not None and len(env.roles) > 1):
            return "[judge] judges one policy in one role, and here there are several: leave it out"
        if self.verdicts == "turn" and (fault := run.agent.refuse_inner("judge.verdicts = 'turn' judges each turn")):
            return fault
        if self.verdicts == "turn" and reader is None:
            return (
                f"judge.verdicts = 'turn' pays every turn, so that long episodes would earn more: name the part "
                f"{self.part!r} in a stage of credit, such as part_weights, or set verdicts to 'episode'"
            )
        if env is None:
            return None
        if self.part in env.part_names:
            return f"judge.part = {self.part!r} is a part that {env.name} pays: give another name"
        if self.needs_expert and not env.has_expert:
            return (
                f"[judge] asks the expert, which {env.name} does not have: override expert() in the environment, give "
                "criteria other rules, or by = 'openai:MODEL'"
            )
        return None
