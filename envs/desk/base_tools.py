"""The tools that every desk has."""

import abc
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from manyturn.envs.desk.database import Record, Store
from manyturn.envs.tools.tool import ToolError

CLOSED = "closed"
NOTHING_TO_ANSWER = "done"  # the answer of who has done every request and was asked for no figure


class DeskTools(abc.ABC):
    """Tools over a store. Each desk adds its own, and lists all of them.

    Args:
        store: of the episode; the environment puts another one in its place when an episode begins.
        shown: table -> the fields that a record shows; of other tables all are shown.
    """

    def __init__(self, store: Store, shown: Mapping[str, tuple[str, ...]] = MappingProxyType({})):
        self.store, self._shown = store, shown

    def tools(self) -> list[Callable[..., Any]]:
        """The tools: those that only read, those that write, and ``close``."""
        shared = [self.find_user_by_email, self.find_user_by_name, self.get_user]
        return [*shared, *self.reads(), *self.writes(), self.close]

    @abc.abstractmethod
    def reads(self) -> list[Callable[..., Any]]:
        """This desk's own tools that only read."""

    @abc.abstractmethod
    def writes(self) -> list[Callable[..., Any]]:
        """This desk's own tools that write."""

    def find_user_by_email(self, email: str) -> str:
        """Find a customer by email address. Returns the user id.

        Args:
            email: the address, such as mia.olsen3@mail.com.
        """
        return self._user_id(self.store.tables.by_email.get(email.lower()))

    def find_user_by_name(self, name: str, zip_code: str) -> str:
        """Find a customer by name and zip code. Returns the user id.

        Args:
            name: first and last name.
            zip_code: five digits.
        """
        return self._user_id(self.store.tables.by_name.get((name, zip_code)))

    def get_user(self, user_id: str) -> Record:
        """Show a customer's record.

        Args:
            user_id: such as C12.
        """
        return self._show("users", user_id)

    def close(self, answer: str = NOTHING_TO_ANSWER) -> str:
        """Close the ticket when every request is done or refused.

        Args:
            answer: the figures that the customer asked for, and the rule, such as R4, of each refused request.
        """
        return CLOSED

    def _set(self, table: str, argument: str, key: str, **fields: Any) -> Record:
        """Change fields of a record; what the agent reads of it. Raises ToolError if there is no such record.

        Args:
            argument: the tool's name for the key.
        """
        self.store.change(table, key, **fields)
        return {argument: key, **fields}

    def _show(self, table: str, key: str) -> Record:
        """Fields of a record that an agent sees. Raises ToolError if there is none."""
        record = self.store.find(table, key)
        return {name: record[name] for name in self._shown.get(table, record)}

    @staticmethod
    def _user_id(key: str | None) -> str:
        if key is None:
            raise ToolError("there is no such customer")
        return key
