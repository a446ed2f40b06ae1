"""Layers of plain values, later ones on earlier ones: what a configuration is put together from."""

from collections.abc import Mapping
from typing import Any


def overlay(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the entries of ``changes``, section by section; a section of another kind is replaced.

    >>> overlay({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
    {'a': {'x': 1, 'y': 3}}
    >>> overlay({"a": {"name": "one", "x": 1}}, {"a": {"name": "other"}})
    {'a': {'name': 'other'}}
    """
    merged = dict(base)
    for name, value in changes.items():
        old = merged.get(name)
        other_kind = (
            isinstance(old, dict)
            and isinstance(value, dict)
            and any(key in value and value[key] != old.get(key, value[key]) for key in ("name", "kind", "id", "policy"))
        )
        merged[name] = (
            overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) and not other_kind else value
        )
    return merged
