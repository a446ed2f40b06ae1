"""Doors whose last one is the true answer: a policy that comes nearer to it believes in it more."""

from doors import Doors


class ToldDoors(Doors):
    def answer(self):
        return f"open {self.task.params['order'][-1]}"
