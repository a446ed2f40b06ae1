"""Two policies learn together, each from what its own role earns: a speaker says one word, a listener picks the thing.

    python examples/two_roles.py

The world is the one that ``manyturn new-env name_it --kind roles`` writes. A part of the reward whose name begins with
a role belongs to that role; the outcome belongs to both.
"""

from importlib.resources import files

import manyturn as mt

WORLD = f"{files('manyturn.cli.starters') / 'roles.py'}:NameIt"


def main(partner: str = "listener", out: str = "runs/two-roles", **options) -> dict:
    """Train.

    Args:
        partner: who listens. A name of yours is a policy that learns; ``expert`` and ``random`` do not.
        options: those of a run, such as ``steps=3``.
    """
    run = mt.train(
        WORLD,
        out=out,
        roles={"speaker": "speaker", "listener": partner},
        recipe="rloo",
        report=lambda line: print({key: line[key] for key in line if key == "phase" or key.endswith("success")}),
        **{"steps": 5, "warmup.until_success": 0.3, "warmup.must_succeed": False, **options},
    )
    run.show()
    return run.summary


if __name__ == "__main__":
    main()
