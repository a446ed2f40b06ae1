"""Worlds over a database that refuses every thread but the one that opened it, as sqlite3 does by default."""

import sqlite3

import manyturn as mt


class Counter(mt.TextEnv):
    """Add two rows."""

    instructions = "Commands: add, wait."
    max_turns = 6

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(6)]

    def begin(self, task, rng):
        self.close()
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create table rows (x integer)")
        self.is_lost = False
        return f"{task.id}: the table is empty."

    def respond(self, action):
        self.is_lost = action != "add"
        if action not in self.admissible():
            return self.invalid("What?")
        if action == "add":
            self.database.execute("insert into rows values (1)")
        [[count]] = self.database.execute("select count(*) from rows")
        return self.succeed("Two rows.") if count == 2 else self.go_on(f"{count} rows.")

    def admissible(self):
        return ["add", "wait"]

    def expert(self):
        return "add"

    def close(self):
        if (database := getattr(self, "database", None)) is not None:
            database.close()


class LostCounter(Counter):
    """Its expert raises after any other action."""

    def expert(self):
        return [][0] if self.is_lost else super().expert()
