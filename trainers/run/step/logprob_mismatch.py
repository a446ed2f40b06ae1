"""An alarm where engine and learner judge tokens differently, and what may be the cause.

Before each update the log-probabilities that a step's tokens were drawn with are compared with the learner's. Beyond
the limits something is wrong that no importance weight makes right, and the likely causes are tried one by one on the
sequences that differ most. A cause counts if with it most of the difference is gone:

    temperature     the learner at another temperature says what the engine said
    adapters        the learner without its adapters does
    choices         the learner does over the full vocabulary, where replies are limited
    template        the learner does with a token in front that begins or ends texts
    stale prefix    a reply to a prompt that shares no prefix with any other is right
    weights         such a reply is right after the weights are loaded again
    precision       the engine computes in another type, and the learner differs from itself as much in it

What no cause explains is put down to weights.

Where the ratio is the engine's (``learner.old_logprobs = "engine"``), no pass of the learner over all samples is there
before the update: a few of them are read for the alarm. In the asynchronous order only tokens that the present weights
drew can be compared, and causes are tried in the learner alone: the engine goes on drawing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import torch
from peft import PeftModel

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.trainers.learn.objective.rollout_correction import mismatch
from manyturn.trainers.learn.passes.forward import Reader, read
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.reading.update_inputs import log_ratio
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.trainee import Trainee
from manyturn.trainers.run.step.policy_update import PolicyUpdate

# Largest ratio of 99 in 100 tokens, and of all; of another precision the former, and the divergence in nats.
_P99, _MAX = 1.01, 1.1
_COARSE_P99, _COARSE_KL = 1.5, 0.01
_PRECISION = "precision: it computes in {}, with more rounding than the learner"
_WEIGHTS = "weights: it draws with others than the learner's on any input: look at its load()"
_LEFT = 0.2  # share of the difference that a cause may leave unexplained
_TOKENS = 1024  # of the sequences that causes are tried on
_SAMPLED = 256  # tokens that are read for the alarm where the ratio is the engine's
_TIMES_COARSER = 4.0  # how much more than the learner's own rounding another program's may come to


async def check_engines(run: Run, updates: Sequence[PolicyUpdate]) -> dict[str, str]:
    """Metrics of the alarm, of each policy for which it rings.

    Raises:
        LearningFailed: it rings for another cause than precision, unless the run goes on all the same.
    """
    alarms: dict[str, str] = {}
    for update in updates:
        trainee, reading = update.trainee, update.step.reading
        if run.config.learner.old_logprobs == "engine" and not reading.is_made:
            alike = _are_drawn_alike(update)
            samples = _some([sample for sample, is_alike in zip(reading.samples, alike, strict=True) if is_alike])
            figures = _mismatch(trainee.learner.reader, samples)
        else:
            rows = zip(reading.samples, reading.logprob, _are_drawn_alike(update), strict=True)
            compared = [(sample, row) for sample, row, is_alike in rows if is_alike]
            samples = [sample for sample, _ in compared]
            figures = mismatch(log_ratio(samples, [row for _, row in compared]))
        if _rings(figures, coarse=_is_coarse(trainee)):
            if trainee.gap_cause is None:
                trainee.gap_cause = await _cause(run, trainee, samples, coarse=_is_coarse(trainee))
            alarms |= _ring(run, trainee, figures)
    return alarms


def check_present_version(run: Run, updates: Sequence[PolicyUpdate]) -> dict[str, str]:
    """As ``check_engines`` for the asynchronous order: tokens of the present weights, causes in the learner.

    Raises:
        LearningFailed: as there.
    """
    alarms: dict[str, str] = {}
    for update in updates:
        trainee = update.trainee
        present = [
            replace(sample, reply_mask=sample.reply_mask & _drawn_by(trainee.learner.updates, update, sample))
            for sample in update.step.reading.samples
        ]
        samples = _some([sample for sample in present if sample.reply_mask.any()])
        if not samples:
            continue
        figures, coarse = _mismatch(trainee.learner.reader, samples), _is_coarse(trainee)
        if _rings(figures, coarse=coarse):
            worst = _worst(trainee.learner.reader, samples)
            cause = _cause_in_learner(trainee, worst, _LEFT * _gap(trainee.learner.reader, worst))
            if cause is None and coarse and _is_rounding(trainee.learner.reader, worst, trainee.engine.precision):
                cause = _PRECISION.format(trainee.engine.precision)
            trainee.gap_cause = trainee.gap_cause or cause or _WEIGHTS
            alarms |= _ring(run, trainee, figures)
    return alarms


def _are_drawn_alike(update: PolicyUpdate) -> list[bool]:
    """True if each sample was drawn as the learner reads it."""
    step = update.step
    otherwise = [
        episode.key in step.temperatures
        or episode.replayed is not None
        or (episode.ledger is not None and episode.ledger.is_plain)
        for episode in step.episodes
    ]
    return [not otherwise[sample.episode] for sample in step.reading.samples]


def _ring(run: Run, trainee: Trainee, figures: dict[str, float]) -> dict[str, str]:
    cause = trainee.gap_cause or _WEIGHTS
    if run.config.learner.engine_alarm == "stop" and not cause.startswith("precision"):
        raise LearningFailed(
            f"engine {run.config.engine.name} and learner judge the same tokens differently, by a factor of "
            f"{figures['engine_ratio_max']:.3g} at most: {cause}. With --learner.engine-alarm note the run continues "
            "anyway"
        )
    return trainee.labelled({"engine_alarm": cause})


def _drawn_by(version: int, update: PolicyUpdate, sample: Sample) -> np.ndarray:
    """True at the tokens of replies that weights of this version drew."""
    episode = update.step.episodes[sample.episode]
    versions = np.array([span.version for span in episode.ledger.spans] if episode.ledger else [], np.int64)
    is_drawn_now = (versions == version) & (episode.replayed is None)
    is_present = np.append(is_drawn_now, False)  # the last one for tokens of no reply, whose number is -1
    return is_present[sample.reply]


def _some(samples: Sequence[Sample]) -> list[Sample]:
    """Samples of a few tokens, spread over the step."""
    tokens = sum(map(len, samples))
    stride = max(1, tokens // _SAMPLED)
    return list(samples[:: min(stride, max(1, len(samples)))])


def _mismatch(reader: Reader, samples: Sequence[Sample]) -> dict[str, float]:
    rows = reader.over(samples, {"logprob": attrgetter("logprob")})["logprob"]
    return mismatch(log_ratio(samples, rows))


def _is_coarse(trainee: Trainee) -> bool:
    return trainee.engine.precision != "float32" or trainee.learner.model.device.type == "cuda"


def _rings(figures: dict[str, float], *, coarse: bool) -> bool:
    if coarse:
        return figures["engine_ratio_p99"] > _COARSE_P99 or figures["engine_kl"] > _COARSE_KL
    return figures["engine_ratio_p99"] > _P99 or figures["engine_ratio_max"] > _MAX


async def _cause(run: Run, trainee: Trainee, samples: Sequence[Sample], *, coarse: bool) -> str:
    reader = trainee.learner.reader
    worst = _worst(reader, samples)
    enough = _LEFT * _gap(reader, worst)
    cause = _cause_in_learner(trainee, worst, enough)
    if cause is None:
        await trainee.handover.to_engine()
        try:
            cause = await _cause_in_engine(run, trainee, worst[0], enough)
        except EngineError as error:
            cause = f"weights: asked once more it says: {error}"
        await trainee.handover.to_learner()
    if cause is None and coarse and _is_rounding(reader, worst, trainee.engine.precision):
        cause = _PRECISION.format(trainee.engine.precision)
    return cause or _WEIGHTS


def _cause_in_learner(trainee: Trainee, worst: Sequence[Sample], enough: float) -> str | None:
    """A cause that the learner can try out by itself."""
    reader, model = trainee.learner.reader, trainee.learner.model
    temperature = _likeliest_temperature(reader, worst)
    if _gap(_at(reader, temperature), worst) < enough:
        return (
            f"temperature: its log-probabilities are those of temperature {temperature:.2f}, where "
            f"sampling.temperature = {reader.temperature:g}: have it return those that it draws with"
        )
    if isinstance(model, PeftModel):
        with model.disable_adapter():
            if _gap(reader, worst) < enough:
                return "adapters: it draws without them, so they never arrived: look at what it says of loading them"
    limited = any(sample.allowed or sample.commands for sample in worst)
    if limited and _gap(reader, [replace(sample, allowed={}, commands={}) for sample in worst]) < enough:
        return (
            "choices: its log-probabilities are those of the full vocabulary, where replies are limited to admissible "
            "commands: have it return those among the possible tokens"
        )
    for token in _beginnings(trainee):
        if _gap(reader, [_begun_with(token, sample) for sample in worst]) < enough:
            return f"template: it puts the token {token} in front of every prompt: have it take token ids as they are"
    return None


async def _cause_in_engine(run: Run, trainee: Trainee, sample: Sample, enough: float) -> str | None:
    """A cause that shows in what the engine draws next."""
    if await _probe(run, trainee, sample, 1) < enough:
        return "stale prefix: it goes on from keys and values that older weights computed: clear its cache on a load"
    await trainee.hand_over()
    if await _probe(run, trainee, sample, 2) < enough:
        return "weights: the last transfer did not reach it, while the same again did"
    return None


async def _probe(run: Run, trainee: Trainee, sample: Sample, shift: int) -> float:
    """The difference at a reply to a prompt that begins as no other does, since its first tokens are cut off."""
    first = int(np.argmax(sample.reply_mask))
    prompt = sample.ids[min(shift, first - 1) : first].tolist()
    key = EpisodeKey(run.config.seed, "engine alarm", "probe", shift)
    trainee.engine.open(key)
    try:
        reply = await trainee.engine.generate(key, 0, prompt, trainee.agent.sampling)
    finally:
        trainee.engine.close(key)
    reply_mask = np.arange(len(prompt) + len(reply.ids)) >= len(prompt)
    drawn = np.zeros(len(reply_mask))
    drawn[reply_mask] = reply.logprobs
    probe = Sample(0, np.array([*prompt, *reply.ids]), reply_mask, drawn, np.where(reply_mask, 0, -1))
    return _gap(trainee.learner.reader, [probe])


def _worst(reader: Reader, samples: Sequence[Sample]) -> list[Sample]:
    """The sequences at which engine and learner differ most, up to a number of tokens."""
    rows = reader.over(samples, {"logprob": attrgetter("logprob")})["logprob"]
    apart = [
        np.abs(row.numpy() - sample.engine_logprob)[sample.reply_mask].mean()
        for row, sample in zip(rows, samples, strict=True)
    ]
    worst, tokens = list[Sample](), 0
    for i in np.argsort(apart)[::-1]:
        if worst and tokens + len(samples[i]) > _TOKENS:
            break
        worst.append(samples[i])
        tokens += len(samples[i])
    return worst


def _gap(reader: Reader, samples: Sequence[Sample]) -> float:
    """Mean difference of log-probability, in nats, over what was said."""
    rows = reader.over(samples, {"logprob": attrgetter("logprob")})["logprob"]
    return float(np.abs(log_ratio(samples, rows)).mean())


def _at(reader: Reader, temperature: float) -> Reader:
    return Reader(reader.model, reader.budget, temperature, reader.packing)


def _likeliest_temperature(reader: Reader, samples: Sequence[Sample]) -> float:
    """The temperature at which the learner comes closest to the engine, between a quarter and four."""
    low, high = -2.0, 2.0
    for _ in range(3):
        tried = np.linspace(low, high, 9)
        best = min(tried, key=lambda power: _gap(_at(reader, 2.0**power), samples))
        low, high = best - (high - low) / 8, best + (high - low) / 8
    return float(2.0 ** ((low + high) / 2))


def _beginnings(trainee: Trainee) -> Iterator[int]:
    """Tokens that an engine may put in front of a prompt unasked."""
    begin = trainee.language.tokenizer.bos_token_id
    yield from sorted(trainee.language.template.end_ids | ({begin} if isinstance(begin, int) else set()))


def _begun_with(token: int, sample: Sample) -> Sample:
    """The same sequence after one more token."""
    return replace(
        sample,
        ids=np.r_[token, sample.ids],
        reply_mask=np.r_[False, sample.reply_mask],
        engine_logprob=np.r_[0.0, sample.engine_logprob],
        reply=np.r_[-1, sample.reply],
        allowed={place + 1: tokens for place, tokens in sample.allowed.items()},
        commands={place + 1: tree for place, tree in sample.commands.items()},
    )


def _is_rounding(reader: Reader, samples: Sequence[Sample], precision: str) -> bool:
    """True if the learner in the engine's type differs about as much from itself."""
    if precision != "bfloat16":
        return precision != "float32"  # nothing to compare with
    apart, tokens = 0.0, 0
    for sample in samples:
        with torch.no_grad():
            exact = read(reader.model, [sample], reader.temperature).logprob
            with torch.autocast(reader.model.device.type, torch.bfloat16):
                rounded = read(reader.model, [sample], reader.temperature).logprob
        apart += float((exact - rounded).abs().sum())
        tokens += int(sample.reply_mask.sum())
    return _gap(reader, samples) < _TIMES_COARSER * apart / tokens
