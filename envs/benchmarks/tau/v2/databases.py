"""tau2-bench's databases as shared tables."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from manyturn.envs.benchmarks.tau.database import ARRAYS, OBJECTS, Base, Record, Style
from manyturn.envs.benchmarks.tau.files import Files
from manyturn.envs.benchmarks.tau.v2 import airline_records, retail_records
from manyturn.envs.benchmarks.tau.v2.telecom import records
from manyturn.envs.benchmarks.tau.v2.telecom.records import plain

PHONE = Style(  # the phone's two records are the whole database
    record=OBJECTS.record,
    entry=OBJECTS.entry,
    table=OBJECTS.table,
    whole=lambda tables: tables[0][1],
)
KEYS = {"plans": "plan_id", "customers": "customer_id", "lines": "line_id", "bills": "bill_id", "devices": "device_id"}


def _checked(model: type[BaseModel], content: Any, files: Files, name: str) -> Any:
    try:
        return plain(model.model_validate(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise files.unreadable(name, f"{where}: {first['msg']}") from None


def retail(files: Files) -> Base:
    """Raises DataError."""
    return Base(_checked(retail_records.Database, files.json("db.json"), files, "db.json"), OBJECTS)


def airline(files: Files) -> Base:
    """The database of tau2-bench, or where its file is missing, tau-bench's with a user id in each user.

    Raises DataError.
    """
    if files.find("db.json") is not None:
        return Base(_checked(airline_records.Database, files.json("db.json"), files, "db.json"), OBJECTS)
    older = Files(files.root, "v1", "airline", files.pinned)
    if older.find("users.json") is None:
        files.read("db.json")  # says what is missing
    tables: dict[str, Any] = {name: older.records(f"{name}.json") for name in ("flights", "users", "reservations")}
    tables["users"] = {key: user | {"user_id": key} for key, user in tables["users"].items()}
    return Base(_checked(airline_records.Database, tables, older, "users.json"), OBJECTS)


def telecom(files: Files) -> Base:
    """Raises DataError."""
    database = _checked(records.Database, files.toml("db.toml"), files, "db.toml")
    tables: dict[str, Mapping[str, Record]] = {
        name: {record[key]: record for record in database[name]} for name, key in KEYS.items()
    }
    return Base(tables, ARRAYS)


def phone(files: Files) -> Base:
    """Raises DataError."""
    database = _checked(records.UserDatabase, files.toml("user_db.toml"), files, "user_db.toml")
    return Base({"phone": database}, PHONE)


BASES = {"retail": retail, "airline": airline, "telecom": telecom}
