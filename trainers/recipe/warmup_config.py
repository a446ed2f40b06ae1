"""Options of the warm-up by imitation."""

from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts

_EPISODES = OnlyWith("episodes", may_wait=True)
_HERE = OnlyWith("from_run", None, may_wait=True)
_PLAYED = OnlyWith("trajectories", None, may_wait=True)


class WarmupConfig(Options):
    from_run: str | None = None
    """Folder of a run whose warm-up is taken over: this run begins with the weights that it had at the end of it."""
    trajectories: Annotated[str | None, _EPISODES, _HERE] = None
    """File or folder of trajectories that are imitated in place of demonstrations: whatever ``manyturn trajectories
    import`` reads or has written, and the folder of an evaluation. Those that failed or broke off are left out."""
    episodes: Annotated[Annotated[int, Field(ge=0)] | Literal["stream"], _HERE] = 1000
    """Demonstrations that are collected, or trajectories that are taken, at most, to be shown again and again; stream
    plays new demonstrations for every update, without end; 0 leaves the warm-up out."""
    labels: Annotated[Literal["actions", "all_actions", "expert"], _EPISODES, _HERE, _PLAYED] = "actions"
    """What is learnt at a turn of a demonstration: the action that was taken, of successful episodes; the same of all
    episodes, which with noise = 1 teaches to speak and nothing about the goal; or what the expert would do there,
    whoever acted, of all episodes (DAgger). The expert must have an answer in every state."""
    policy_share: Annotated[float, OnlyWith("labels", "expert", may_wait=True)] = Field(default=0.0, ge=0, le=1)
    """Share of turns at which the policy itself acts, drawn turn by turn, while the expert labels all of them."""
    noise: Annotated[float, _EPISODES, _HERE, _PLAYED] = Field(default=0.3, ge=0, le=1)
    """Share of random moves in the demonstrations, to show recovery; with labels = 'actions' only successful ones are
    learnt from."""
    invalid: Annotated[float, _EPISODES, _HERE, _PLAYED] = Field(default=0.0, ge=0, lt=1)
    """Share of turns in the demonstrations at which something is said that means nothing, such as half a command. That
    is seen and not learnt; what is said next shows how to recover."""
    batch: Annotated[int, _EPISODES, _HERE] = Field(default=8, ge=1)
    """Sequences in an update: episodes, or turns where the context is a window."""
    lr: Annotated[float, _EPISODES, _HERE] = Field(default=4e-3, gt=0)
    """Learning rate, decayed to a tenth over max_updates."""
    max_updates: Annotated[int, _EPISODES, _HERE] = Field(default=1500, ge=1)
    """Most updates."""
    until_success: Annotated[float, _EPISODES, _HERE] = Field(default=0.5, ge=0, le=1)
    """Success on validation tasks at which the warm-up ends; steps and seconds mean different things on each seed."""
    must_succeed: Annotated[bool, _EPISODES, _HERE] = True
    """Stop where the warm-up ends without any success; with until_success = 0 none is asked for."""
    observed: Annotated[float, _EPISODES, _HERE] = Field(default=0.0, ge=0)
    """What a token of the environment's text weighs, where one that is said weighs 1. A model that begins from nothing
    learns to copy from what it sees long before the few words that it says would teach it."""
    among: Annotated[Literal["admissible", "vocabulary"], _EPISODES, _HERE] = "admissible"
    """Tokens among which an imitated one is learnt, with agent.only_admissible: those that the turn's commands leave
    open there, or all of the vocabulary. In the former a name that no other could replace has no gradient. Success is
    measured among commands either way. With agent.choices = "command" it is always all of the vocabulary."""
    plateau: Annotated[int | None, _EPISODES, _HERE] = Field(default=None, ge=1)
    """Measurements in a row without a higher success after which the warm-up ends, once there is a success; unset: it
    goes on."""
    check_every: Annotated[int, _EPISODES, _HERE] = Field(default=50, ge=1)
    """Updates between two measurements of success."""
    check_episodes: Annotated[int, _EPISODES, _HERE] = Field(default=64, ge=1)
    """Validation tasks in a measurement."""

    @property
    def imitates(self) -> bool:
        """True if demonstrations or trajectories are learnt from."""
        return bool(self.episodes) and self.from_run is None

    @property
    def streams(self) -> bool:
        """True if demonstrations are played for each update."""
        return self.episodes == "stream"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        by_labels = self._refuse_all_actions(env) or self._refuse_labels(env) or self._refuse_among(run)
        return by_labels or self._refuse_stream() or self._refuse_trajectories(run)

    def _refuse_among(self, run: Any) -> str | None:
        if not self.imitates or self.among == "admissible" or run.agent.chooses == "token":
            return None
        if run.agent.chooses == "command":
            return (
                "warmup.among = 'vocabulary' has no effect with agent.choices = 'command', which learns replies so "
                "anyway: leave it out"
            )
        return (
            "warmup.among = 'vocabulary' has no effect where replies are not limited, which are learnt so anyway: set "
            "agent.only_admissible, or leave it out"
        )

    def _refuse_all_actions(self, env: EnvFacts | None) -> str | None:
        if not self.imitates or self.labels != "all_actions" or env is None:
            return None
        if env.has_expert and not (self.noise or self.invalid):
            return (
                "warmup.labels = 'all_actions' has no effect where only the expert acts, who succeeds: set "
                "warmup.noise, or leave it out"
            )
        return None

    def _refuse_labels(self, env: EnvFacts | None) -> str | None:
        if not self.imitates or self.labels != "expert":
            return None
        if env is not None and not env.has_expert:
            return (
                f"warmup.labels = 'expert' needs an expert, which {env.name} does not have: override expert() in the "
                "environment, or leave it out"
            )
        if not (self.noise or self.invalid or self.policy_share):
            return (
                "warmup.labels = 'expert' has no effect where only the expert acts: set warmup.policy_share, or "
                "warmup.noise, or leave it out"
            )
        if self.policy_share and not self.streams:
            return (
                f"warmup.policy_share needs new demonstrations as the policy changes, and warmup.episodes = "
                f"{self.episodes} collects them before: set warmup.episodes = 'stream'"
            )
        return None

    def _refuse_stream(self) -> str | None:
        if not self.imitates or not self.streams or self.trajectories is None:
            return None
        return (
            "warmup.episodes = 'stream' plays demonstrations, and warmup.trajectories has recorded ones: give a number "
            "as warmup.episodes"
        )

    def _refuse_trajectories(self, run: Any) -> str | None:
        if not self.imitates or self.trajectories is None:
            return None
        if fault := run.agent.refuse_inner("warmup.trajectories hold actions alone"):
            return fault
        for name in ("show_admissible", "only_admissible"):
            if getattr(run.agent, name):
                return (
                    f"agent.{name} needs the admissible commands of each turn, which trajectories do not hold: leave "
                    "it or warmup.trajectories out"
                )
        return None
