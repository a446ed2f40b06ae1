"""Signature of the code that a run's folder names, by which this account knows its own runs.

A run in FILE.py:Class, with arguments that may start programs or spend keys, or with partners that are files or
endpoints, is signed when it begins, with a key of this account. A folder from elsewhere has no such signature, and is
data: it starts no code, and asks no endpoint, before the user agrees.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.contract.atomic_files import cache_of, replace_text
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.registration.env_registry import guarded_arguments, is_only_by_hand
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.role_config import RoleConfig, RoleKind
from manyturn.trainers.record.run_folder import SIGNATURE

_KEY_BYTES = 32
_LONGEST = 100  # bytes of a signature
NamedCode = tuple[str, Mapping[str, Any]]


def sign(run: Path, config: RunConfig) -> None:
    """Sign what a run names; a run that names no code gets no signature."""
    if named_code(config) or named_partners(config):
        replace_text(run / SIGNATURE, _signature(config) + "\n")


def is_signed(run: Path, config: RunConfig) -> bool:
    """True where this account has named what the run names."""
    file = run / SIGNATURE
    signature = file.read_bytes()[:_LONGEST].strip() if file.is_file() else b""
    return hmac.compare_digest(signature, _signature(config).encode())


def foreign_code(run: Path, config: RunConfig) -> list[NamedCode]:
    """Code that a run's environments name, see ``named_code``; empty where this account has named it."""
    code = named_code(config)
    return [] if code and is_signed(run, config) else code


def foreign_partners(run: Path, config: RunConfig) -> dict[str, RoleConfig]:
    """Partners that a run names, see ``named_partners``; empty where this account has named them."""
    partners = named_partners(config)
    return {} if partners and is_signed(run, config) else partners


def check_signed(run: Path, config: RunConfig) -> None:
    """Raise ConfigError where a run would start code, or ask an endpoint, that this account has not named."""
    names = [f"{name} {json.dumps(args)}" if args else name for name, args in foreign_code(run, config)]
    names += [f"roles.{role} = {entry.policy}" for role, entry in foreign_partners(run, config).items()]
    if names:
        raise ConfigError(
            f"{run} was not begun by this account, and its config.toml names what would run here: {', '.join(names)}; "
            "if you trust it, add --accept-code"
        )


def named_code(config: RunConfig) -> list[NamedCode]:
    """Environments that are code themselves, or whose arguments may name files, programs or keys, with those."""
    named = list[NamedCode]()
    for env in config.environments.values():
        by_hand = is_only_by_hand(env.id)
        # The constructor of a file is not asked what is harmless: that would run the file.
        args = dict(env.args) if by_hand else {name: env.args[name] for name in guarded_arguments(env.id, env.args)}
        if by_hand or args:
            named.append((env.id, args))
    return sorted(named, key=lambda one: one[0])


def named_partners(config: RunConfig) -> dict[str, RoleConfig]:
    """Partners in roles that are code, or endpoints, which are asked with this account's key."""
    return {role: entry for role, entry in config.roles.items() if entry.kind in (RoleKind.FILE, RoleKind.ENDPOINT)}


def _signature(config: RunConfig) -> str:
    partners = {role: entry.model_dump(mode="json") for role, entry in named_partners(config).items()}
    named = [named_code(config), partners] if partners else named_code(config)
    return hmac.new(_key(), json.dumps(named, sort_keys=True, default=str).encode(), hashlib.sha256).hexdigest()


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
