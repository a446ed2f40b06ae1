"""A wrong name pulls a wrong image, or none."""

import platform
from dataclasses import replace

import pytest

from manyturn.envs.benchmarks.swebench.env import image_of, swebench_image
from manyturn.envs.benchmarks.swebench.rows import R2EGYM, REBENCH, SWEBENCH, SWEGYM, SWESMITH, DataError, Row


def row(family, instance="Owner__Name-12", image=""):
    return Row(family, instance, "owner/name", "0" * 40, "text", image=image)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row(SWEBENCH), "swebench/sweb.eval.x86_64.owner_1776_name-12:latest"),
        (row(SWEBENCH, image="swebench/sweb.eval.x86_64.a_1776_b-1:v5"), "swebench/sweb.eval.x86_64.a_1776_b-1:v5"),
        (row(SWEGYM), "xingyaoww/sweb.eval.x86_64.owner_s_name-12:latest"),
        (row(REBENCH), "swerebench/sweb.eval.x86_64.owner_1776_name-12:latest"),
        (row(REBENCH, image="docker.io/swerebench/x:1"), "swerebench/x:1"),
        (
            row(SWESMITH, image="jyangballin/swesmith.x86_64.o_1776_n.12345678"),
            "jyangballin/swesmith.x86_64.o_1776_n.12345678:latest",
        ),
        (row(SWESMITH, image="swesmith.x86_64.O__n.12345678"), "jyangballin/swesmith.x86_64.o_1776_n.12345678:latest"),
        (row(R2EGYM, image="namanjain12/pillow_final:0af"), "namanjain12/pillow_final:0af"),
    ],
)
def test_each_set_has_its_own_names(monkeypatch, given, expected):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert image_of(given) == expected


def test_an_image_built_here_has_no_namespace_and_keeps_its_underscores():
    assert swebench_image("A__b-1", namespace=None, tag="v1", arch="arm64") == "sweb.eval.arm64.a__b-1:v1"


def test_an_arm_machine_gets_arm_images(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert image_of(row(SWEBENCH)) == "swebench/sweb.eval.arm64.owner_1776_name-12:latest"


def test_a_mirror_and_an_image_of_ones_own():
    given = row(SWEGYM)
    assert image_of(given, "registry.local:5000/{image}") == "registry.local:5000/" + image_of(given)
    assert image_of(given, "sweb.eval.x86_64.{instance}:mine") == "sweb.eval.x86_64.owner__name-12:mine"
    assert image_of(given, "manyturn-python:1") == "manyturn-python:1"


@pytest.mark.parametrize("image", ["--privileged", "a b", "A/B:1", "a;b", "x" * 500, "a/../b", "a\nb", "a@sha256:1"])
def test_what_is_no_name_is_refused(image):
    with pytest.raises(DataError, match="no name of an image"):
        image_of(replace(row(R2EGYM), image=image))
