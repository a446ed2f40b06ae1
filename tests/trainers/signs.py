"""Walks with a sign that pay the true effect of each turn, as a part of its own."""

from dataclasses import replace

from manyturn.envs.pivot.sign import PivotSign


class Signs(PivotSign):
    part_names = ("effect",)

    def respond(self, action: str):
        effect = self.effect(action) if action in self.admissible() else 0.0
        turn = super().respond(action)
        return replace(turn, parts={**turn.parts, "effect": effect})
