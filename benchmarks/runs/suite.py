"""A policy on a suite, as a committed file that docs/suite-v1.md is made of.

    nice -n 15 python -m benchmarks.runs.suite random --require engine --require browser --require data
    nice -n 15 python -m benchmarks.runs.suite expert --require engine --require browser --require data
    python -m benchmarks.runs.suite openai:MODEL --name my-model -- --sampling.max-tokens 1024
    manyturn suite page v1 > docs/suite-v1.md

The result goes to ``results/suite/v1/NAME.json``. The same command on the same commit continues what was interrupted.
"""

import argparse
import asyncio
from pathlib import Path

from rich.console import Console

from benchmarks.kit.provenance import RESULTS, ROOT, commit, origin, write
from manyturn.api.evaluation import Settings, stem_of
from manyturn.suites.play import evaluate_suite
from manyturn.suites.table import show_results
from manyturn.terminal.overrides import parse_overrides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", help="as manyturn evaluate takes it")
    parser.add_argument("--name", help="of the file and on the page; default: the policy")
    parser.add_argument("--suite", default="v1")
    parser.add_argument("--only", action="append", default=[], help="a panel or a family; default: all")
    parser.add_argument("--require", action="append", default=[], help="engine, browser or data")
    parser.add_argument("--out", type=Path, help="default: the committed file")
    parser.add_argument("options", nargs="*", help="of the policy, after --")
    options = parser.parse_args()
    name = options.name or stem_of(options.policy)
    out = options.out or RESULTS / "suite" / options.suite / f"{name}.json"
    about = origin(out, ("numpy", "gymnasium", "torch", "transformers", "playwright", "docker"))
    folder = ROOT / "runs" / f"suite-{options.suite}-{commit()}" / name  # of this commit alone
    playing = evaluate_suite(
        [options.policy],
        options.suite,
        Settings(out=folder),
        parse_overrides(options.options),
        only=options.only,
        require=options.require,
    )
    [result] = asyncio.run(playing)
    show_results({name: result}, Console())
    write(out, about, result.values)


if __name__ == "__main__":
    main()
