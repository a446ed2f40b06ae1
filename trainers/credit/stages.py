"""The stages of a step, each a registry of named functions: a curriculum draws tasks, four stages give credit.

==========  ==========================================  =======================================================
stage       question                                    function
==========  ==========================================  =======================================================
curriculum  which tasks are played                      ``(TaskPool, config) -> numbers of tasks``
rewards     who earned what                             ``(TurnBatch, config) -> TurnBatch`` or ``Rewarded``
advantage   compared with what                          ``(TurnBatch, config) -> advantage_K`` or ``Advantage``
modulation  weighted by what                            ``(TurnBatch, advantage_K, config) -> advantage_K``, or T
objective   which loss of the tokens                    ``(Tokens, config) -> TokenLoss``
==========  ==========================================  =======================================================

A function is registered next to its configuration, as ``registry.py`` says. The curricula's registry is in
``play/pool.py``, that of objectives in ``learn/objective.py``.
"""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Self

from manyturn.envs.contract.options.registry import Named, Registry
from manyturn.trainers.credit.batch.turn_batch import BoolE, FloatK, FloatT, TurnBatch


class StageConfig(Named):
    """Base of the configuration of a stage's function. A subclass narrows ``name`` to a Literal of one string."""

    order: ClassVar[int | None] = None
    """Place among stages of its kind in a stack of recipes, the smallest first; None: recipes are stacked as they are
    named. Rewards: what is paid (10), gates on it (20), what is judged by the outcome (30), what replaces it (40).
    Modulations: weights of a turn (10), what adds a bonus to them (20), weights of tokens (30)."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Columns of the batch, over turns or tokens, without which the function cannot work."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """Columns that it takes into account where they are there."""
    adds: ClassVar[frozenset[str]] = frozenset()
    """Parts that a reward stage adds."""
    empties: ClassVar[frozenset[str]] = frozenset()
    """Parts that a reward stage pays out under other names, and leaves at 0."""
    by_token: ClassVar[bool] = False
    """Whether an advantage separates the tokens of a turn, or a modulation weighs them."""
    compares_returns_only: ClassVar[bool] = False
    """Whether an advantage knows nothing of an episode's rewards but their sum."""
    compares_groups: ClassVar[bool] = False
    """Whether an advantage compares an episode with the others of its task. One that is alone then earns 0, unless the
    stage has an option ``singleton`` that says otherwise."""
    weighs_by: ClassVar[str | None] = None
    """What of a turn a modulation weighs it by, such as its entropy. A turn is weighed by one thing once."""
    reads_verdicts: ClassVar[bool] = False
    """Whether the part that the option ``part`` names is a judge's verdicts, from 0 to 1."""
    chooses: ClassVar[bool] = True
    """Whether a curriculum prefers some tasks to others."""
    needs_fresh_samples: ClassVar[bool] = False
    """Whether it takes each sample for one of the policy that is trained: an advantage that measures how often this
    succeeds, or an objective without a ratio by which samples of an older policy could be learnt from."""
    labels: ClassVar[bool] = False
    """Whether a curriculum chooses between kinds of tasks: in a run of several environments, between these."""

    @property
    def turn_discount(self) -> float | None:
        """The discount of the returns that an advantage compares over turns in one situation; None if it does not."""
        return None

    def of_returns(self) -> Self:
        """The same advantage with a critic's targets that are returns, and hold a value of its own only at the end
        of a truncated episode that ``bootstrap`` carries on."""
        return self

    def refuse_advantage(self, advantage: "StageConfig") -> str | None:
        """The reason why a reward stage cannot be used with an advantage; None if it can."""
        return None

    def named_parts(self) -> set[str]:
        """Parts of the reward that the options name."""
        return set()


class Rewarded(NamedTuple):
    """The result of a reward function that returns more than the batch.

    Attributes:
        batch: the batch with its new rewards.
        diagnostics: name -> figure for the metrics.
    """

    batch: TurnBatch
    diagnostics: Mapping[str, float] = {}


class Advantage(NamedTuple):
    """The result of an advantage function that returns more than the advantage.

    Attributes:
        total_K: the advantage.
        levels: name -> what the advantage is made of (K), kept for traces.
        diagnostics: name -> figure for the metrics.
        token_T: credit of each reply token, where a method separates tokens of a turn; total_K is then what stands
            for the turn in traces.
        targets_T: what a value head is to predict at each reply token, NaN where nothing; None: the method uses no
            values.
        kept_E: whether an episode is learnt from; None: all are.
    """

    total_K: FloatK
    levels: Mapping[str, FloatK] = {}
    diagnostics: Mapping[str, float] = {}
    token_T: FloatT | None = None
    targets_T: FloatT | None = None
    kept_E: BoolE | None = None


REWARDS: Registry[TurnBatch | Rewarded] = Registry("reward stage", "manyturn.trainers.credit.rewards")
ADVANTAGES: Registry[FloatK | Advantage] = Registry("advantage", "manyturn.trainers.credit.advantages")
MODULATIONS: Registry[FloatK] = Registry("modulation", "manyturn.trainers.credit.modulations")
