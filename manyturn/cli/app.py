"""The command line. Each command is a thin layer over a function that can be called from Python too."""

import gc
import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

import manyturn
from manyturn.cli.commands.audit import credit_audit
from manyturn.cli.commands.containers import containers_app, images_app
from manyturn.cli.commands.envs import check, data_app, envs, new_env, panel_app, play
from manyturn.cli.commands.export import export
from manyturn.cli.commands.host import host, sampler
from manyturn.cli.commands.improve import improve
from manyturn.cli.commands.plan import plan
from manyturn.cli.commands.played_env import (
    PLAYING,
    TASKS,
    AnswerTimeout,
    PlayedArgs,
    PlayedEnv,
    PlayedWrappers,
    Workers,
)
from manyturn.cli.commands.serve import serve
from manyturn.cli.commands.suite import suite_app
from manyturn.cli.commands.tasks import tasks_app
from manyturn.cli.commands.trajectories import trajectories_app
from manyturn.envs.hosting.local.shutdown_watchdog import STATUS
from manyturn.terminal import command_exit
from manyturn.terminal.escape import visible
from manyturn.terminal.task_option import TaskWords

app = App(
    name="manyturn",
    help=f"A gym for language-model agents that take many turns.\n\n{command_exit.HELP}",
    version=manyturn.__version__,
    help_format="markdown",  # so that paragraphs are filled to the width of the terminal
    suppress_keyboard_interrupt=False,
)
app.register_install_completion_command(help="Install completion of commands and options for your shell, and exit.")
POLICIES, ENVIRONMENTS, LISTS, MACHINE = map(
    Group.create_ordered, ("Train and evaluate", "Environments", "Look up", "This machine")
)
for group, commands in {
    POLICIES: (panel_app, suite_app, trajectories_app),
    ENVIRONMENTS: (tasks_app, data_app),
    MACHINE: (images_app, containers_app),
}.items():
    for command in commands:
        command.group = (group,)
        app.command(command)
for command in (improve, credit_audit, plan):
    app.command(command, group=POLICIES)
for command in (envs, new_env, check, play, serve, host, sampler, export):
    app.command(command, group=ENVIRONMENTS)
Overrides = Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]
SUITE = Parameter(group=Group.create_ordered("A suite"))


@app.command(group=POLICIES)
def quickstart(
    *overrides: Overrides,
    out: Path = Path("runs/quickstart"),
    seed: int = 0,
    dry: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a tiny agent in mazes, from scratch, and prove it.

    Parameters
    ----------
    overrides
        Further options as for train, such as --steps 10.
    out
        Folder of the run; must not hold one yet.
    seed
        All randomness derives from it.
    dry
        Print what it will take, and do not train.
    """
    from manyturn.api.training import configured
    from manyturn.terminal.overrides import parse_overrides

    _begin(configured(("quickstart",), parse_overrides(overrides), seed=seed), out, dry=dry)


@app.command(
    group=POLICIES, usage="Usage: manyturn train [ENV] [--SECTION.OPTION VALUE]... [--recipe NAME]... [--out FOLDER]"
)
def train(
    *words: Overrides,
    tasks: Annotated[TaskWords, Parameter(show=False)] = None,
    recipe: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    out: Path | None = None,
    dry: Annotated[bool, Parameter(negative="")] = False,
    resume: Path | None = None,
    accept_config: Annotated[bool, Parameter(negative="")] = False,
    accept_env: Annotated[bool, Parameter(negative="")] = False,
    accept_code: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train an agent on an environment.

    ENV is an id such as manyturn/Maze-v0, or FILE.py:Class, unless a recipe names it. Options of the run are named as
    in a recipe, such as --learner.lr 1e-4 --credit.advantage grpo --steps 40. manyturn options lists them all, and
    manyturn options learner those of a section. --model.path DIR trains a Hugging Face model instead of a tiny one.

    --envs '["manyturn/Maze-v0", {id = "manyturn/Desk-v0", weight = 2}]' trains one policy in several environments.

    Sections, and the options that are set most:

    - env: id, args, wrappers, workers, timeout
    - model: path, dtype, width, layers
    - agent: format, context, max-context, system
    - sampling: temperature, max-tokens
    - engine: max-batch, reproducible, cache-gb
    - warmup: episodes, lr, until-success, max-updates, trajectories
    - order: kind, staleness
    - placement: kind, hosts, samplers
    - rollout: tasks, group, max-turns
    - credit: rewards, advantage, modulation
    - objective: aggregation, kl, entropy, correction
    - learner: lr, minibatch, epochs, micro-tokens, lora-rank
    - value, progress: body, lr, hidden
    - judge: by, criteria, verdicts, min-agreement
    - implicit: beta, lr
    - evaluation: split, limit, repeats, every
    - stopping: no-signal
    - no section: envs, steps, seed, tasks, device, threads, checkpoint-every, roles, curriculum, columns, loggers

    Parameters
    ----------
    words
        ENV, and options of the run.
    recipe
        A TOML file, or the name of a recipe that comes with manyturn: a complete run or a method, see manyturn recipes.
        May be given several times: a later recipe changes what it names, and adds its reward stages and modulations
        to those of the earlier ones.
    out
        Folder of the run; default: runs/ENV, numbered.
    dry
        Do not train: try these options briefly in a temporary folder, and print what the run will take, what limits
        it, and what to change.
    resume
        Continue the run in this folder from its last checkpoint, a finished one too: with --steps N until it has N
        steps. Takes no other options than that and the next three.
    accept_config
        Continue although the run's config.toml was edited since, or a partner in a role is another one; summary.json
        then says what was changed.
    accept_env
        Continue although the environment has changed since, such as a file of it; summary.json, metrics and report then
        say what differs, and from which step on.
    accept_code
        Run the code that the run's config.toml names although another account or machine began the run: FILE.py:Class,
        or arguments that may name files, programs or keys.
    """
    from manyturn.api.training import accepted, configured, fresh_folder

    accept = accepted(config=accept_config, env=accept_env, code=accept_code)
    if resume is not None:
        _resume(resume, words, bool(recipe or out or dry or tasks is not None), accept)
        return
    if accept:
        raise ValueError(f"--accept-{accept[0]} has no effect: it belongs to --resume RUN")
    from manyturn.recipes import refusals_by_recipe
    from manyturn.terminal.overrides import parse_words, put_option

    named, options = parse_words(words)
    if len(named) > 1:
        raise ValueError(
            f"{named[1]!r} is no option: name one environment, or several in --envs, then --section.name value for "
            "each option"
        )
    if tasks is not None:
        put_option(options, "tasks", list(tasks))
    with refusals_by_recipe(recipe):
        config = configured(recipe, options, *named)
        _begin(config, out or fresh_folder(config.env_title), dry=dry)


@app.command(group=POLICIES)
def evaluate(
    policy: str,
    *words: Overrides,
    env: PlayedEnv = None,
    env_args: PlayedArgs = None,
    wrappers: PlayedWrappers = None,
    split: Annotated[str | None, TASKS] = None,
    limit: Annotated[int | None, TASKS] = None,
    tasks: Annotated[TaskWords, TASKS] = None,
    panel: Annotated[Path | None, TASKS] = None,
    repeats: Annotated[int, PLAYING] = 1,
    seed: Annotated[int, PLAYING] = 0,
    workers: Workers = 0,
    timeout: AnswerTimeout = None,
    out: Annotated[Path | None, PLAYING] = None,
    experience: Annotated[Path | None, PLAYING] = None,
    suite: Annotated[str | None, SUITE] = None,
    only: Annotated[tuple[str, ...], SUITE, Parameter(negative="", show_default=False)] = (),
    require: Annotated[tuple[str, ...], SUITE, Parameter(negative="", show_default=False)] = (),
) -> None:
    """Evaluate policies on a pinned panel of held-out tasks.

    A run is evaluated as it was trained: with its agent, sampling, engine, environment arguments and reward wrappers.
    Options of the policy are named as in a run's configuration: --sampling.temperature 0 --sampling.max-tokens 32
    --engine.max-batch 64 for runs too; --agent.context window --agent.format free_text --agent.show-admissible true for
    models and endpoints; and --endpoint.timeout 30 for endpoints, see docs/endpoints.md. A model's agent.max-context is
    its own limit, at most 8192, unless it is given. docs/search.md: --search tree --search.tokens 500.

    Parameters
    ----------
    policy
        A run's folder, a checkpoint, a model's folder, GGUF file or id, openai:MODEL for an endpoint (OPENAI_BASE_URL),
        also openai-responses:MODEL and anthropic:MODEL (ANTHROPIC_BASE_URL), FILE.py:POLICY for a function or class of
        yours, expert, random, or replay:FOLDER for the actions of an evaluation once more, to see whether its
        environment has changed.
    words
        Further policies, for one table of all; then options of the policies.
    split
        The split that the panel is taken from. Default: test.
    limit
        Most tasks on the panel. Default: 128, or all of --tasks.
    tasks
        Tasks to play: ids, @FILE of ids, failed:FOLDER for those at which the policy of an evaluation failed, or
        tag=NAME. Several are put together. Default: the first of the split.
    panel
        A panel's file, from manyturn panel make, in place of split, limit, tasks and env.args. Arguments that name
        programs or places that keys are sent to must be given here too.
    repeats
        Episodes of each task.
    seed
        Sampling noise and episode randomness derive from it.
    out
        Folder for summary.json, episodes.parquet and turns.parquet; an interrupted evaluation in it continues. Of
        several policies each has a folder in it. Default: nothing is kept; of a suite, runs/suite-NAME/POLICY.
    experience
        Folder of manyturn improve: what the policy is shown.
    suite
        Play a suite in place of one environment: v1, v2, or a file of manyturn suite freeze; see docs/suite.md.
    only
        Panels or families of the suite, such as maze or maze-hard. May be given several times. Default: all.
    require
        engine, browser or data: a suite's panel that lacks it is an error. Default: such panels are skipped by name.
    """
    from rich.console import Console

    from manyturn.api.evaluation import Settings, evaluate_policies, names_of, show
    from manyturn.terminal.overrides import parse_overrides

    policies = [policy, *itertools.takewhile(lambda word: not word.startswith("--"), words)]
    options = parse_overrides(words[len(policies) - 1 :])

    world = (env, env_args or {}, wrappers, split, limit, panel)
    settings = Settings(*world, repeats, seed, workers, timeout, out, tasks, experience)
    if suite is not None:
        from manyturn.suites.play import evaluate_suite
        from manyturn.suites.table import show_results

        results = command_exit.run(evaluate_suite(policies, suite, settings, options, only=only, require=require))
        show_results(dict(zip(names_of(policies), results, strict=True)), Console())
        return
    if only or require:
        raise ValueError(f"--{'only' if only else 'require'} has no effect without --suite: add --suite v1")
    evaluations = command_exit.run(evaluate_policies(policies, settings, options))
    show(names_of(policies), evaluations, settings, Console())


@app.command(group=POLICIES)
def compare(*evaluations: Path, shared: bool = False, out: Path | None = None) -> None:
    """Compare policies with the first, task by task.

    Differences, p-values, and what became worse.

    Parameters
    ----------
    evaluations
        Two or more folders of evaluations, or of runs, whose evaluation is meant then.
    shared
        Compare over the tasks that all have, where their panels differ.
    out
        JSON file for everything, all regressions included.
    """
    from manyturn.api.comparison import compare_evaluations

    compare_evaluations(evaluations, shared, out)


@app.command(group=POLICIES)
def report(*paths: Path, out: Path | None = None, shared: bool = False) -> None:
    """Write one HTML file: curves, intervals, and episodes turn by turn.

    Parameters
    ----------
    paths
        Folder of a run or of an evaluation; several are compared with the first.
    out
        The file. Default: report.html in the folder; report.html here for several folders.
    shared
        Compare over the tasks that all have, where panels differ.
    """
    from manyturn.report.report_file import write_report

    file = write_report(paths, out, shared)
    print(f"{file}, {file.stat().st_size / 1e6:.1f} MB: open it in a browser")


@app.command(group=POLICIES)
def view(path: Path, *, port: int = 0) -> None:
    """Show a run in the browser, while it goes on; or an evaluation.

    On this machine alone.

    Parameters
    ----------
    path
        Folder of a run, which may still go on, or of a finished evaluation.
    port
        Port on 127.0.0.1; 0 takes any that is free.
    """
    from manyturn.report.report_server import serve

    serve(path, port)


@app.command(group=POLICIES)
def seeds(*runs: Path, out: Path | None = None) -> None:
    """Show how far runs of different seeds are apart on held-out tasks.

    Parameters
    ----------
    runs
        Folders of runs, or of evaluations of runs, on one panel; from three on there is an interval.
    out
        JSON file for everything.
    """
    from manyturn.api.comparison import compare_seeds

    compare_seeds(runs, out)


@app.command(group=MACHINE)
def doctor() -> None:
    """Check the installation and the machine, and say how to fix problems.

    Versions, extras, devices, engines, memory.
    """
    from rich.console import Console

    from manyturn.cli.doctor import examine, print_findings

    if not print_findings(examine(), Console(highlight=False)):
        sys.exit(1)


@app.command(group=LISTS)
def recipes(name: str | None = None) -> None:
    """List the recipes for train --recipe NAME; with a name, its page.

    The page has formulas, options and metrics.

    Parameters
    ----------
    name
        A recipe of the list, or a TOML file.
    """
    from rich.console import Console

    from manyturn.cli.pages.method_pages import print_page, print_recipes

    if name is None:
        print_recipes(Console(highlight=False))
    else:
        print_page(name, Console(highlight=False))


@app.command(group=LISTS)
def options(section: str | None = None, *, markdown: bool = False) -> None:
    """List the options of a run and of a policy: type, default, what it does.

    Those of plugins too.

    Parameters
    ----------
    section
        A section or an option, such as learner, agent.context or endpoint. Default: all.
    markdown
        Print the page docs/options.md instead: what comes with manyturn.
    """
    from rich.console import Console

    from manyturn.cli.pages import option_pages

    if markdown and section is not None:
        raise ValueError("--markdown prints the page of all options: leave the section out")
    if markdown:
        print(option_pages.markdown(), end="")
    else:
        option_pages.print_options(section, Console(highlight=False))


def _resume(run: Path, words: tuple[str, ...], others: bool, accept: tuple[str, ...]) -> None:
    from manyturn.envs.contract.near_names import near_names
    from manyturn.terminal.overrides import SWITCHES, parse_overrides
    from manyturn.trainers.record.run_folder import read_config

    options = parse_overrides(words)
    strange = sorted(options.keys() - {"steps"})
    if others or strange:
        near = [] if not strange else near_names(strange[0].replace("_", "-"), ("steps", *SWITCHES))
        hint = f"; did you mean --{near[0]}?" if near else ""
        raise ValueError(
            "--resume continues a run as it was configured: give no other options than --steps N, --accept-config, "
            f"--accept-env and --accept-code{hint}"
        )
    steps = options.get("steps")
    if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool)):
        raise ValueError(f"--steps {steps}: give a number of steps, such as --steps 40")
    shown = read_config(run) if steps is None else read_config(run).model_copy(update={"steps": steps})
    _train(shown, run, resume=True, accept=accept, steps=steps)


def _begin(config: Any, out: Path, *, dry: bool) -> None:
    """Train, or estimate what the training will take."""
    if not dry:
        return _train(config, out)
    from manyturn.api.estimates.training_estimate import estimate_training

    estimate_training(config, out)


def _train(config: Any, out: Path, **resumed: Any) -> None:
    from manyturn.terminal.training_progress import TrainingReport
    from manyturn.trainers.learn.ranks.process_group import own_rank
    from manyturn.trainers.record.stop_signal import Stopped

    if own_rank():
        from manyturn.trainers.run.setup.ranks.rank_startup import follow

        return follow()
    from manyturn.api.training import without_foreign_bars
    from manyturn.trainers.run.loop.loop import train as run

    try:
        with without_foreign_bars(), TrainingReport(out, config) as report:
            report.finish(command_exit.run(run(None if resumed else config, out, **resumed, report=report)))
    except Stopped as stopped:
        print(f"manyturn: {stopped}", file=sys.stderr)
        sys.exit(stopped.exit_code)


def main() -> None:
    """Entry point: an error is one line that names the fix; MANYTURN_DEBUG=1 shows where it came from."""
    gc.set_threshold(10_000, 10, 10)  # thousands of episodes live together, and looking for cycles among them costs
    with command_exit.SignalWatch() as ending, command_exit.warnings_in_one_line():
        try:
            app(sys.argv[1:], print_error=False, exit_on_error=False)
        except KeyboardInterrupt as interrupted:
            sys.exit(STATUS + getattr(interrupted, "signal", signal.SIGINT))
        except SystemExit as end:
            if ending.last_signal and not end.code:  # a server or a game that a signal ended in order
                sys.exit(STATUS + ending.last_signal)
            raise
        except Exception as error:
            if os.environ.get("MANYTURN_DEBUG"):
                raise
            first = command_exit.innermost(error)
            print(visible(f"manyturn: {command_exit.line_of(first)}"), file=sys.stderr)
            sys.exit(command_exit.code_of(first))
