"""Forward passes: what the policy thinks of tokens that were said."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_config import ModelError
from manyturn.agents.model.model_internals import output_head
from manyturn.trainers.learn.passes.command_scores import Chosen, chosen_in, command_scores
from manyturn.trainers.learn.passes.compiled_layers import CompiledLayers
from manyturn.trainers.learn.passes.frozen_states import FrozenStates
from manyturn.trainers.learn.passes.pass_budget import LearningFailed, PassBudget
from manyturn.trainers.learn.passes.samples import Rows, Sample, micro_batches, padded
from manyturn.trainers.learn.passes.token_logprobs import free_scores, limited_scores
from manyturn.trainers.learn.passes.trie.attention import at_nodes, attend_by_tree, tree_inputs
from manyturn.trainers.learn.passes.trie.packing import Packing, least_of, passes
from manyturn.trainers.learn.passes.trie.tree import Tree

PADDED_COMMANDS = (
    "agent.choices = 'command' has the learner read all commands of a turn behind its prompt, and padded rows have no "
    "place for them: set learner.packing = 'auto' with a model that has PyTorch's own attention, or leave out "
    "agent.choices"
)
# Of hidden states: out of which a token was said, out of which a reply's first token was, or at a reply's last token.
Place = Literal["reply_tokens", "reply_starts", "reply_ends"]


class Reading(NamedTuple):
    """A forward pass over B samples of at most T tokens, padded on the right, where nothing sees the padding.

    Samples that begin alike may share what was computed; see ``node``.

    Attributes:
        reply_mask: (B, T) True where the token is of a reply.
        reply: (B, T) number of the turn that the token belongs to in its episode, -1 elsewhere.
        logprob: (B, T) log-probability of each reply token at the requested temperature, 0 elsewhere; of a limited
            token, that among the possible ones.
        entropy: (B, T) entropy in nats of the distribution it was drawn from, 0 elsewhere.
        hidden: (B, T, D) last hidden state at each token; (N, D) at each node where there are nodes.
        node: (B, T) number of the node that stands for each token, 0 in the padding; None: each stands for itself.
        listed: for each command that was chosen, the nodes that the edges of its list begin at; see ``Tree``.
    """

    reply_mask: torch.Tensor
    reply: torch.Tensor
    logprob: torch.Tensor
    entropy: torch.Tensor
    hidden: torch.Tensor
    node: torch.Tensor | None = None
    listed: Sequence[np.ndarray] = ()

    def hidden_at(self, row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        """The hidden states (P, D) at P places."""
        return self.hidden[row, column] if self.node is None else self.hidden[self.node[row, column]]

    def before_each(self, of: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """One number of the hidden state out of which each token is drawn (B, T); 0 at the first, which is not drawn.

        Args:
            of: from hidden states (..., D) to numbers (...).
        """
        numbers = of(self.hidden[:, :-1]) if self.node is None else of(self.hidden)[self.node[:, :-1]]
        return torch.nn.functional.pad(numbers, (1, 0))

    def at(self, place: Place) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and columns of the hidden states at a place, row by row."""
        if place == "reply_ends":
            return reply_ends(self.reply)
        if place == "reply_starts":
            return reply_starts(self.reply)
        row_T, column_T = self.reply_mask.nonzero(as_tuple=True)
        return row_T, column_T - 1

    def states(self, place: Place) -> list[torch.Tensor]:
        """The hidden states at a place: (T, D) or (S, D) for each row."""
        row_T, column_T = self.at(place)
        return by_row(self.hidden_at(row_T, column_T), row_T, len(self.reply_mask))


def reply_ends(reply_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of the last token of each reply, row by row and in order.

    >>> reply_ends(torch.tensor([[-1, 0, 0, -1, 1], [-1, 2, -1, -1, -1]]))
    (tensor([0, 0, 1]), tensor([2, 4, 1]))
    """
    following = torch.nn.functional.pad(reply_BT[:, 1:], (0, 1), value=-1)
    row_S, column_S = ((reply_BT >= 0) & (reply_BT != following)).nonzero(as_tuple=True)
    return row_S, column_S


def reply_starts(reply_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of the token before each reply, row by row and in order.

    >>> reply_starts(torch.tensor([[-1, 0, 0, -1, 1], [-1, 2, -1, -1, -1]]))
    (tensor([0, 0, 1]), tensor([0, 3, 0]))
    """
    preceding = torch.nn.functional.pad(reply_BT[:, :-1], (1, 0), value=-1)
    row_S, column_S = ((reply_BT >= 0) & (reply_BT != preceding)).nonzero(as_tuple=True)
    return row_S, column_S - 1


def by_row(values_T: torch.Tensor, row_T: torch.Tensor, rows: int) -> list[torch.Tensor]:
    """Values, row by row, as one tensor for each of ``rows`` rows."""
    return list(values_T.split(torch.bincount(row_T, minlength=rows).tolist()))


def encoded(
    decoder: PreTrainedModel,
    samples: Sequence[Sample],
    packing: Packing = "padding",
    frozen: FrozenStates | None = None,
    most: int | None = None,
    chosen: Sequence[Chosen] = (),
) -> tuple[torch.Tensor, Reading]:
    """One forward pass of a body without output head: token ids (B, T), and a reading without probabilities.

    Args:
        frozen: keeps what its lower layers compute; not used where there are commands.
        most: see ``least_of``.
        chosen: commands of the samples, whose lists are read too.

    Raises:
        LearningFailed: there are commands, and rows that are padded have no place for them.
    """

    def together(rows: Sequence[torch.Tensor], padding: int = 0) -> torch.Tensor:
        return padded(rows, padding).to(decoder.device)

    ids = together([torch.from_numpy(sample.ids).long() for sample in samples])
    reply_mask = together([torch.from_numpy(sample.reply_mask).bool() for sample in samples])
    reply = together([torch.from_numpy(sample.reply).long() for sample in samples], -1)
    rows = [sample.ids for sample in samples]
    tree = None if packing == "padding" else Tree.of(rows, least_of(packing, rows, most))
    if chosen:
        if tree is None:
            raise LearningFailed(PADDED_COMMANDS)
        tree = tree.with_commands(chosen)
    inputs = {"input_ids": ids} if tree is None else tree_inputs(tree, decoder.device)
    if frozen is None or chosen:
        hidden = decoder(**inputs, use_cache=False).last_hidden_state
    else:
        below = frozen.below(decoder, samples)
        hidden = frozen.above(decoder, padded(below) if tree is None else at_nodes(tree, below), inputs)
    node, listed = None, ()
    if tree is not None:
        listed = tuple(tree.listed)
        hidden, node = hidden[0], together([torch.from_numpy(row) for row in tree.rows])
    nothing = torch.zeros(ids.shape, device=hidden.device, dtype=torch.promote_types(hidden.dtype, torch.float32))
    return ids, Reading(reply_mask, reply, nothing, nothing, hidden, node, listed)


def read(
    model: PreTrainedModel,
    samples: Sequence[Sample],
    temperature: float,
    packing: Packing = "padding",
    frozen: FrozenStates | None = None,
    most: int | None = None,
) -> Reading:
    """One forward pass; the output head is applied where something was said and nowhere else."""
    chosen = chosen_in(samples)
    ids, body = encoded(model.get_decoder(), samples, packing, frozen, most, chosen)
    logprob = entropy = torch.zeros_like(body.logprob)
    by_token = body.reply_mask
    if chosen:
        scores = command_scores(output_head(model), body.hidden, samples, chosen, body.listed, temperature)
        place = scores.row, scores.column
        logprob, entropy = logprob.index_put(place, scores.logprob), entropy.index_put(place, scores.entropy)
        by_token = by_token.index_put(place, torch.zeros_like(by_token[place]))
    if not chosen or by_token.any():
        place, *scores = _scores_by_token(model, ids, body._replace(reply_mask=by_token), samples, temperature)
        logprob, entropy = (of.index_put(place, score) for of, score in zip((logprob, entropy), scores, strict=True))
    return body._replace(logprob=logprob, entropy=entropy)


def _scores_by_token(
    model: PreTrainedModel, ids: torch.Tensor, body: Reading, samples: Sequence[Sample], temperature: float
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor, torch.Tensor]:
    """Places of tokens that were drawn one by one, their log-probabilities and entropies."""
    row, column = place = body.reply_mask.nonzero(as_tuple=True)
    states, targets = body.hidden_at(row, column - 1), ids[place]
    if any(sample.allowed for sample in samples):
        allowed = [samples[row].allowed.get(column) for row, column in torch.stack(place, 1).tolist()]
        logprob, entropy = limited_scores(output_head(model), states, targets, temperature, allowed)
    elif body.node is None:
        logprob, entropy = free_scores(output_head(model), states, targets, temperature)
    else:
        # What several samples say at one node is computed once, out of the same hidden state.
        nodes, which = body.node[place].unique(return_inverse=True)
        first = torch.empty_like(nodes).scatter_(0, which, torch.arange(len(which), device=which.device))
        scores = free_scores(output_head(model), states[first], targets[first], temperature)
        logprob, entropy = (each[which] for each in scores)
    return place, logprob, entropy


def precision(model: PreTrainedModel) -> contextlib.AbstractContextManager[object]:
    """Precision of a forward pass: on a GPU bfloat16, elsewhere the model's own type."""
    cuda = model.device.type == "cuda"
    return torch.autocast("cuda", torch.bfloat16) if cuda else contextlib.nullcontext()


def recompute_activations(model: PreTrainedModel) -> None:
    """Turn on gradient checkpointing, which works in training mode only; dropout, which that brings, is taken out."""
    # The name from transformers 5.23 on, or the one before.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            vars(module)["attention_dropout"] = 0.0
    model.train()


Watch = Callable[[Reading], Iterable[torch.Tensor]]  # what is kept of a pass: a tensor for each of its rows


class Reader:
    """Reads samples in groups that fit into memory.

    Args:
        budget: of one pass: padded tokens, or with another packing nodes.
        temperature: of the distributions that log-probabilities and entropies are of, greater than 0.
        packing: how samples of different lengths share a pass.
        frozen: keeps what lower layers compute, for other passes over the same tokens.
        compiled: what the model's layers are while a pass computes; None: as they are.

    Attributes:
        requested, computed: tokens of the samples that were read, and those that were computed for it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        budget: PassBudget,
        temperature: float,
        packing: Packing = "padding",
        frozen: FrozenStates | None = None,
        compiled: CompiledLayers | None = None,
    ):
        if temperature <= 0:
            raise ValueError(
                f"temperature = {temperature} gives every token but the likeliest a log-probability of minus "
                "infinity, from which nothing can be learnt: set sampling.temperature above 0"
            )
        self.model, self.budget, self.temperature = model, budget, temperature
        self.packing: Packing = packing
        self._frozen, self._compiled = frozen, compiled
        self.requested = self.computed = 0
        if packing != "padding":
            try:
                attend_by_tree(self.body)
            except ModelError:
                if packing != "auto":
                    raise
                self.packing = "padding"

    @property
    def body(self) -> PreTrainedModel:
        """The model without its output head."""
        return self.model.get_decoder()

    def hidden(self, inputs: Mapping[str, Any]) -> torch.Tensor:
        """The last hidden states (B, T, D) of a pass whose frozen layers are computed already."""
        if self._frozen is None:
            return self.body(**inputs, use_cache=False).last_hidden_state
        shape, width = inputs["input_ids"].shape, self.model.config.get_text_config().hidden_size
        states = torch.zeros(*shape, width, device=self.model.device, dtype=self.model.dtype)
        return self._frozen.above(self.body, states, inputs)

    def at(self, temperature: float) -> "Reader":
        """The same at another temperature."""
        return Reader(self.model, self.budget, temperature, self.packing, self._frozen, self._compiled)

    def keeping_nothing(self) -> "Reader":
        """The same for tokens that are read once."""
        return Reader(self.model, self.budget, self.temperature, self.packing, compiled=self._compiled)

    def readings(self, samples: Sequence[Sample], indices: Sequence[int]) -> Iterator[tuple[list[int], Reading]]:
        """Forward passes over the samples with these indices, in groups: the indices of each group and its reading."""
        for chosen in self.groups(samples, indices):
            longest = max(len(samples[i]) + samples[i].listed for i in chosen)
            self.budget.passing(len(chosen), longest * len(chosen))
            yield chosen, self.read([samples[i] for i in chosen])

    def groups(self, samples: Sequence[Sample], indices: Sequence[int]) -> list[list[int]]:
        """The samples with these indices in groups, each of which is for one pass."""
        rows = [samples[i] for i in indices]
        if self.packing == "padding":
            groups = micro_batches(rows, self.budget.tokens)
        else:
            ids = [sample.ids for sample in rows]
            listed = [sample.listed for sample in rows]
            groups = passes(ids, self.budget.tokens, least_of(self.packing, ids), listed)
        return [[indices[i] for i in group] for group in groups]

    def read(self, samples: Sequence[Sample]) -> Reading:
        """One forward pass over samples that fit into one."""
        compiled = contextlib.nullcontext() if self._compiled is None else self._compiled.in_place()
        with precision(self.model), compiled:
            return self._counted(samples, self._read(samples))

    def _read(self, samples: Sequence[Sample]) -> Reading:
        return read(self.model, samples, self.temperature, self.packing, self._frozen, self.budget.tokens)

    def _counted(self, samples: Sequence[Sample], reading: Reading) -> Reading:
        self.requested += sum(map(len, samples))
        self.computed += reading.reply_mask.numel() if reading.node is None else len(reading.hidden)
        return reading

    @torch.no_grad()
    def over(self, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        """A pass over everything without gradient: what each watch keeps of it, a tensor on the CPU for each sample."""
        return self.budget.within(lambda: self._over(samples, watches))

    def _over(self, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        rows_of = {name: [torch.empty(0)] * len(samples) for name in watches}
        for chosen, reading in self.readings(samples, range(len(samples))):
            for name, watch in watches.items():
                for i, row in zip(chosen, watch(reading), strict=True):
                    # Entries beyond its tokens are padding; what has fewer, such as one for each reply, stays as it is.
                    rows_of[name][i] = row[: len(samples[i])].cpu()
        return rows_of


class BodyReader(Reader):
    """Reads with a model that has no output head: only hidden states are found."""

    def __init__(
        self, decoder: PreTrainedModel, budget: PassBudget, packing: Packing, frozen: FrozenStates | None = None
    ):
        super().__init__(decoder, budget, 1.0, packing, frozen)

    @property
    def body(self) -> PreTrainedModel:
        return self.model

    def read(self, samples: Sequence[Sample]) -> Reading:
        with precision(self.model):
            return self._counted(samples, self._read(samples))

    def _read(self, samples: Sequence[Sample]) -> Reading:
        return encoded(self.model, samples, self.packing, self._frozen, self.budget.tokens)[1]
