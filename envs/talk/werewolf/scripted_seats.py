"""Scripted play of all five seats, each by what that seat may know."""

from collections import Counter
from collections.abc import Sequence

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.talk.werewolf.game import (
    ACCUSE,
    CLEAR,
    EXPOSE,
    KILL,
    LOOK,
    SEER,
    SILENCE,
    SPEAK,
    VOTE,
    WEREWOLF,
    Game,
    Move,
    Statement,
)


def scripted_move(game: Game, key: str) -> Move:
    """The move of the seat that acts.

    Villagers believe the first who claims to be the seer, until a death refutes it, and vote against all who claim so
    later; without a claim they vote for whom most accuse. The seer speaks up on the second day, or when it knows the
    werewolf. The werewolf accuses others, and answers a seer who exposes it by claiming to be the seer itself.

    Args:
        key: of the game; what is left to chance follows from it.
    """
    draws = Draws("werewolf", key, game.day, game.actor, game.phase)
    kind = game.kind_of(game.actor)
    others = [seat for seat in game.living if seat != game.actor]
    if game.phase == LOOK:
        return Move(LOOK, draws.pick([seat for seat in others if seat not in game.looks] or others))
    if game.phase == KILL:
        return Move(KILL, draws.pick([seat for seat in others if _claims_to_be_seer(game, seat)] or others))
    if game.phase == VOTE:
        return Move(VOTE, _most_accused(game, others, draws) if kind == WEREWOLF else _suspect(game, others, draws))
    assert game.phase == SPEAK
    return {WEREWOLF: _wolf_statement, SEER: _seer_statement}.get(kind, _villager_statement)(game, others, draws)


def _wolf_statement(game: Game, others: Sequence[int], draws: Draws) -> Move:
    exposers = [each.speaker for each in _claims(game, EXPOSE) if each.target == game.actor and each.speaker in others]
    return Move(EXPOSE, exposers[-1]) if exposers else Move(ACCUSE, draws.pick(others))


def _seer_statement(game: Game, others: Sequence[int], draws: Draws) -> Move:
    if (wolf := _seen_wolf(game, others)) is not None:
        return Move(EXPOSE, wolf)
    innocent = [seat for seat in others if game.looks.get(seat) is False]
    return Move(CLEAR, draws.pick(innocent)) if innocent and game.day > 1 else Move(SILENCE)


def _villager_statement(game: Game, others: Sequence[int], draws: Draws) -> Move:
    suspects = _exposed(game, others)
    if suspects:
        return Move(ACCUSE, suspects[0])
    return Move(ACCUSE, draws.pick(others)) if draws.below(2) else Move(SILENCE)


def _suspect(game: Game, others: Sequence[int], draws: Draws) -> int:
    """The seat that a villager or the seer votes for."""
    wolf = _seen_wolf(game, others) if game.actor == game.seer else None
    if wolf is not None:
        return wolf
    if suspects := _exposed(game, others):
        return suspects[0]
    own = game.looks if game.actor == game.seer else {}
    cleared = {each.target for each in _claims(game, CLEAR) if not _is_refuted(game, each)}
    unclear = [seat for seat in others if seat not in cleared and own.get(seat) is not False]
    return _most_accused(game, unclear or others, draws)


def _seen_wolf(game: Game, others: Sequence[int]) -> int | None:
    """The werewolf, if the seer has looked at it, or somebody else claims to be the seer."""
    seen = [seat for seat in others if game.looks.get(seat)]
    return next(iter(seen or [seat for seat in others if _claims_to_be_seer(game, seat)]), None)


def _exposed(game: Game, others: Sequence[int]) -> list[int]:
    """Seats to vote for by what seers said: the first one who is not refuted is believed, and later ones are liars."""
    claims = [each for each in game.statements if each.kind in (EXPOSE, CLEAR)]
    liars = [each.speaker for each in claims if _is_refuted(game, each)]
    honest = [each for each in claims if each.speaker not in liars]
    believed = [each for each in honest if each.speaker == honest[0].speaker]
    rivals = [each.speaker for each in honest if each.speaker != honest[0].speaker]
    named = [each.target for each in believed if each.kind == EXPOSE and each.target is not None]
    return [seat for seat in (*liars, *named, *rivals) if seat in others]


def _is_refuted(game: Game, claim: Statement) -> bool:
    """True if the seat that acts knows that a statement of a seer is a lie."""
    if game.actor == game.seer and claim.speaker != game.seer:
        return True
    known_innocent = {game.actor, *(seat for seat in range(len(game.names)) if seat not in game.living)}
    if claim.kind == EXPOSE and claim.target in known_innocent and game.kind_of(game.actor) != WEREWOLF:
        return True
    return claim.speaker not in game.living and claim.speaker != game.seer


def _claims(game: Game, kind: str) -> list[Statement]:
    return [each for each in game.statements if each.kind == kind]


def _claims_to_be_seer(game: Game, seat: int) -> bool:
    return any(each.speaker == seat and each.kind in (EXPOSE, CLEAR) for each in game.statements)


def _most_accused(game: Game, among: Sequence[int], draws: Draws) -> int:
    """The seat that most statements of this day are against; chance decides between equals."""
    against = Counter(each.target for each in game.statements if each.day == game.day and each.kind in (ACCUSE, EXPOSE))
    most = max(against[seat] for seat in among)
    return draws.pick([seat for seat in among if against[seat] == most])
