"""The names under which each set publishes the images of its instances."""

import platform
import re

from manyturn.envs.benchmarks.swebench.rows import REBENCH, SWEBENCH, SWEGYM, SWESMITH, DataError, Row

_NAME = re.compile(
    r"[a-z0-9][a-z0-9._-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)


def swebench_image(instance: str, namespace: str | None = "swebench", tag: str = "latest", arch: str = "x86_64") -> str:
    """SWE-bench's rule; an image that was built on this machine has no namespace.

    >>> swebench_image("astropy__astropy-12907")
    'swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest'
    >>> swebench_image("Django__Django-1", namespace=None, tag="v1", arch="arm64")
    'sweb.eval.arm64.django__django-1:v1'
    """
    name = f"sweb.eval.{arch}.{instance}:{tag}"
    return (name if namespace is None else f"{namespace}/{name}".replace("__", "_1776_")).lower()


def swegym_image(instance: str) -> str:
    """SWE-Gym's rule.

    >>> swegym_image("getmoto__moto-7584")
    'xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7584:latest'
    """
    return f"xingyaoww/sweb.eval.x86_64.{instance.replace('__', '_s_')}:latest".lower()


def image_of(row: Row, rule: str = "{image}") -> str:
    """The image of an instance. Raises DataError if that is no image's name.

    Args:
        rule: how to get from the set's own name for it to the one that is used, such as
            ``registry.local:5000/{image}`` for a mirror. ``{instance}`` is the instance's id, in lower case.
    """
    rules = {SWEBENCH: _swebench, SWEGYM: swegym_image, REBENCH: _rebench}
    image = row.image or rules[row.family](row.instance)
    if row.family == SWESMITH and "/" not in image:
        image = f"jyangballin/{image}".replace("__", "_1776_").lower()
    image = image.removeprefix("docker.io/")
    if ":" not in image.rpartition("/")[2] and "@" not in image:
        image += ":latest"
    name = rule.replace("{image}", image).replace("{instance}", row.instance.lower())
    if len(name) > 400 or not _NAME.fullmatch(name):
        raise DataError(f"{row.instance}: {name!r:.100} is no name of an image: fix the row, or give image=NAME")
    return name


def _swebench(instance: str) -> str:
    return swebench_image(instance, arch="arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64")


def _rebench(instance: str) -> str:
    return swebench_image(instance, namespace="swerebench")
