"""Options that would do nothing, or could not work, and are taken without a word."""

from typing import Annotated

import pytest

from manyturn.envs.contract.options.option_conflicts import options_in, refuse_idle, refuse_unfit
from manyturn.envs.contract.options.options import UNFINISHED, ConfigError, OnlyWith, Options

pytestmark = pytest.mark.versions


class Retry(Options):
    times: int = 0
    pause: Annotated[float, OnlyWith("times")] = 1.0
    """Refused as soon as it is set for nothing."""
    log: Annotated[str, OnlyWith("times", may_wait=True)] = ""


class Shape(Options):
    form: str | None = None
    weight: Annotated[float, OnlyWith("form", "sum", "mean")] = 1.0

    def refuse(self, run, env):
        return f"{run.name}: nothing is median" if self.form == "median" and env is None else None


class Whole(Options):
    name: str = "whole"
    retry: Retry = Retry()
    shapes: tuple[Shape, ...] = ()
    named: dict[str, Shape] = {}

    def refuse(self, run, env):
        return f"{env} is too small" if env else None


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Retry, {"pause": 2.0}, "pause has no effect with times = 0: leave it out"),
        (Shape, {"weight": 2.0}, "weight has no effect while form is unset: leave it out"),
        (Shape, {"form": "max", "weight": 2.0}, "weight has no effect with form = 'max': leave it out"),
    ],
)
def test_an_option_whose_switch_is_off_is_refused(kind, values, message):
    with pytest.raises(ValueError, match=message):
        kind(**values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Retry, {"pause": 1.0}),  # the default, as a configuration that was written down has it
        (Retry, {"pause": 2.0, "times": 1}),
        (Retry, {"log": "file"}),
        (Shape, {"form": "mean", "weight": 2.0}),
    ],
)
def test_an_option_that_works_or_may_wait_is_taken(kind, values):
    assert kind(**values).model_dump(include=set(values)) == values


def test_what_a_change_on_top_may_still_fix_is_not_refused_yet():
    values = {"retry": {"pause": 2.0}}
    assert Whole.model_validate(values, context=UNFINISHED).retry.pause == 2.0
    with pytest.raises(ValueError, match="no effect"):
        Whole.model_validate(values)


def test_a_change_on_top_that_waits_for_its_switch_is_refused():
    with pytest.raises(ConfigError, match=r"retry\.log has no effect with retry\.times = 0: set that"):
        refuse_idle(Whole(), {"retry": {"log": "file"}})
    refuse_idle(Whole(retry=Retry(times=1)), {"retry": {"log": "file"}, "named": {"a": {}}})


def test_options_are_found_wherever_they_stand():
    whole = Whole(shapes=(Shape(form="a"),), named={"x": Shape(form="b")})
    assert [type(o).__name__ for o in options_in(whole)] == ["Whole", "Retry", "Shape", "Shape"]


@pytest.mark.parametrize("place", [{"shapes": (Shape(form="median"),)}, {"named": {"x": Shape(form="median")}}])
def test_a_reason_of_inner_options_refuses_the_whole(place):
    with pytest.raises(ConfigError, match=r"^whole: nothing is median$"):
        refuse_unfit(Whole(**place))


class Narrow(Shape):
    def refuse(self, run, env):
        return "too narrow" if self.weight == 0 else None


@pytest.mark.parametrize(
    ("shape", "reason"),
    [(Narrow(form="median"), "whole: nothing is median"), (Narrow(form="sum", weight=0), "too narrow")],
)
def test_a_subclass_does_not_lift_what_its_base_refuses(shape, reason):
    with pytest.raises(ConfigError, match=reason):
        refuse_unfit(Whole(shapes=(shape,)))


def test_options_are_asked_again_when_the_environment_is_open():
    refuse_unfit(Whole())
    with pytest.raises(ConfigError, match="a maze is too small"):
        refuse_unfit(Whole(), "a maze")
