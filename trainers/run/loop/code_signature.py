"""Signature of the code that a run's folder names, by which this account knows its own runs.

A run in FILE.py:Class, or with arguments that may start programs or spend keys, is signed when it begins, with a key of
this account. A folder from elsewhere has no such signature, and is data: it starts no code before the user agrees.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.contract.atomic_files import cache_of, replace_text
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.registration.env_registry import guarded_arguments, is_only_by_hand
from manyturn.trainers.recipe.config import EnvConfig

FILE = "signature"
_KEY_BYTES = 32
_LONGEST = 100  # bytes of a signature
NamedCode = tuple[str, Mapping[str, Any]]


def sign(run: Path, environments: Iterable[EnvConfig]) -> None:
    """Sign what a run's environments name; a run that names no code gets no signature."""
    if code := named_code(environments):
        replace_text(run / FILE, _signature(code) + "\n")


def foreign_code(run: Path, environments: Iterable[EnvConfig]) -> list[NamedCode]:
    """Code that a run's environments name, see ``named_code``; empty where this account has named it."""
    code = named_code(environments)
    file = run / FILE
    signature = file.read_bytes()[:_LONGEST].strip() if code and file.is_file() else b""
    return [] if code and hmac.compare_digest(signature, _signature(code).encode()) else code


def check_signed(run: Path, environments: Iterable[EnvConfig]) -> None:
    """Raise ConfigError where a run would start code that this account has not named."""
    if code := foreign_code(run, environments):
        names = ", ".join(f"{name} {json.dumps(args)}" if args else name for name, args in code)
        raise ConfigError(
            f"{run} was not begun by this account, and its config.toml names code that would run here: {names}; if you "
            "trust it, add --accept-code"
        )


def named_code(environments: Iterable[EnvConfig]) -> list[NamedCode]:
    """Environments that are code themselves, or whose arguments may name files, programs or keys, with those."""
    named = list[NamedCode]()
    for env in environments:
        by_hand = is_only_by_hand(env.id)
        # The constructor of a file is not asked what is harmless: that would run the file.
        args = dict(env.args) if by_hand else {name: env.args[name] for name in guarded_arguments(env.id, env.args)}
        if by_hand or args:
            named.append((env.id, args))
    return sorted(named, key=lambda one: one[0])


def _signature(code: list[NamedCode]) -> str:
    text = json.dumps(code, sort_keys=True, default=str)
    return hmac.new(_key(), text.encode(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    """The account's key, which is made at its first use. Without it, runs are as those of strangers."""
    file = cache_of("signing") / "key"
    if not file.is_file():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = file.with_name(f".key.{os.getpid()}")
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
        try:
            os.link(aside, file)  # the first of several processes wins
        except FileExistsError:
            pass
        finally:
            aside.unlink()
    return file.read_bytes()
