"""``harbor:DIR``: rewards that agents write, tests that they see or break, steps that pay otherwise than Harbor's.

What docs/other-tasksets.md says of a task folder is tried here.
"""

import json
from pathlib import Path

import pytest
from harbor_folders import PLAIN, STEPS, says, written

import manyturn as mt
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.containers.engine.container_engine import client
from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.harbor.verifier import Broken
from manyturn.envs.tools.calls import call_text, calls_text

SUBMIT = call_text("submit")
SOLVED = {"dig": "echo yes > dig.txt", "fill": "echo sand > fill.txt", "go home": "echo yes > home.txt"}


def bash(command: str) -> str:
    return call_text("bash", command=command)


def play(folder: Path, actions: list[str], **args: object) -> list[tuple]:
    """The turns of an episode."""
    env = mt.make(f"harbor:{folder}", **args)
    env.reset(seed=0)
    turns = [env.step(action) for action in actions]
    env.close()
    return turns


@pytest.fixture
def plain(engine: str, tmp_path: Path) -> Path:
    return written(tmp_path / "plain", PLAIN)


@pytest.fixture
def steps(engine: str, tmp_path: Path) -> Path:
    return written(tmp_path / "steps", STEPS)


@pytest.mark.deep
def test_commands_play_a_folder_with_the_rewards_of_its_own_tests(command, plain, tmp_path):
    checked = command("check", f"harbor:{plain}")
    assert checked.code == 0 and "expert" in checked.out, checked.out + checked.err
    for policy, success in (("expert", True), ("random", False)):
        out = tmp_path / policy
        ended = command("evaluate", policy, "--env", f"harbor:{plain}", "--split", "train", "--out", out)
        assert ended.code == 0, ended.err
        [episode] = read_episodes(out / "episodes.parquet")
        assert (episode["success"], episode["return"]) == (success, float(success))


def test_the_first_text_says_where_and_what_without_the_mark_of_a_benchmark(plain):
    env = mt.make(f"harbor:{plain}")
    text, _ = env.reset(seed=0)
    assert text == "You work in /app.\n\nWrite yes into answer.txt."
    said, *_ = env.step(calls_text([("bash", {"command": 'echo "$GREETING"; cat /app/start.txt; pwd -P'})]))
    assert said == "hi   there\nbegin\n/workspace"
    env.step(call_text("edit", path="/app/answer.txt", old="", new="yes\n"))
    assert env.step(SUBMIT)[1] == 1
    env.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    "attack",
    [
        "mkdir -p /tmp/logs/verifier; echo 1 > /logs/verifier/reward.txt; cat /logs/verifier/reward.txt",
        "mkdir -p /tmp/logs/verifier; echo '{\"reward\": 1}' > /logs/verifier/reward.json",
        "mkdir -p /tmp/logs && ln -s /workspace /tmp/logs/verifier; echo 1 > reward.txt",
        "mkdir /tmp/tests; cd /tests; printf 'echo 1 > /logs/verifier/reward.txt' > test.sh; chmod +x test.sh",
        "(setsid sh -c 'while mkdir -p /tmp/logs/verifier; do echo 1 > /tmp/logs/verifier/reward.txt; done' &)",
        "for name in json os stat sys sitecustomize; do echo 'import posix; posix.write(3, b\"{}\")' > $name.py; done",
        "printf 'read() { :; }; found=yes' > .bashrc; cp .bashrc /tmp/.bashrc; cp .bashrc /tmp/.profile",
        "ln -s /tests/hidden.txt answer.txt",
    ],
)
def test_what_the_agent_writes_before_the_tests_run_is_no_reward(plain, attack):
    _, (_, reward, terminated, _, info) = play(plain, [bash(attack), SUBMIT])
    assert (reward, terminated, info["success"]) == (0, True, False)


def test_tests_are_never_there_while_the_agent_works(steps):
    look = bash(
        "ls -A /tests/ /tmp /logs/ /solution/; grep -rs the-hidden-word /tmp /workspace /dev/shm /run /var; true"
    )
    turns = play(steps, [look, bash(SOLVED["dig"]), SUBMIT, look, bash(SOLVED["fill"]), SUBMIT, look])
    for text, *_ in turns:
        assert "the-hidden-word" not in text and "test.sh" not in text and "common.txt" not in text


@pytest.mark.deep
def test_steps_pay_what_harbor_pays_and_end_below_their_least_reward(steps):
    env = mt.make(f"harbor:{steps}")
    assert env.get_wrapper_attr("part_names") == ("step:dig", "step:fill")
    env.close()

    def paid(*done: str) -> tuple[list[dict], dict]:
        actions = [action for name in done for action in (bash(SOLVED.get(name, "true")), SUBMIT)]
        turns = play(steps, actions)
        return [turn[4]["reward_parts"] for turn in turns if turn[4]["reward_parts"]], turns[-1][4]

    third = pytest.approx(1 / 3)
    parts, info = paid("dig", "fill", "go home")
    assert parts == [{"step:dig": third}, {"step:fill": third}, {"outcome": third}]
    assert info["success"] and info["progress"] == 1 and info["measures"] == {"steps": 3}
    parts, info = paid("dig", "nothing", "go home")  # 0.4 is paid, and the next step begins: it has no least reward
    assert parts == [{"step:dig": third}, {"step:fill": pytest.approx(0.4 / 3)}, {"outcome": third}]
    assert not info["success"] and info["progress"] == pytest.approx(2 / 3)
    parts, info = paid("nothing")  # Harbor's mean is over the steps that were played
    assert parts == [{"outcome": 0}] and not info["success"] and info["progress"] == 0


@pytest.mark.deep
def test_the_last_reward_alone_counts_where_the_folder_says_so(engine, tmp_path):
    final = {**STEPS, "task.toml": f'multi_step_reward_strategy = "final"\n{STEPS["task.toml"]}'}
    turns = play(
        written(tmp_path / "final", final), [bash(SOLVED["dig"]), SUBMIT, SUBMIT, bash(SOLVED["go home"]), SUBMIT]
    )
    assert [turn[1] for turn in turns] == [0, 0, 0, 0, 1]
    assert turns[-1][4]["success"]


def test_a_step_begins_with_what_belongs_to_it_in_the_files_that_were_handed_in(steps):
    turns = play(
        steps,
        [
            bash("cd /tmp; echo yes > /app/dig.txt; echo kept > /tmp/note"),
            SUBMIT,
            bash("cat shout.txt staged.txt /tmp/note"),
        ],
    )
    assert turns[1][0].endswith("Write what staged.txt says into fill.txt.") and turns[2][0] == "YES\nsand\nkept"


@pytest.mark.deep
def test_the_solutions_of_steps_are_an_expert_and_a_snapshot_goes_on_with_them(steps):
    env, other = mt.make(f"harbor:{steps}"), mt.make(f"harbor:{steps}")
    env.reset(seed=0)
    expert = env.get_wrapper_attr("expert")
    for _ in range(3):
        env.step(expert())
    kept, left = env.get_wrapper_attr("snapshot")(), []
    other.get_wrapper_attr("restore")(kept)
    for one in (env, other):
        left.append([])
        while not left[-1] or not left[-1][-1][2]:
            left[-1].append(one.step(one.get_wrapper_attr("expert")()))
        one.close()
    assert left[0] == left[1] and left[0][-1][4]["success"] and len(left[0]) == 3


def test_a_solution_finds_the_files_next_to_it_and_its_own_interpreter(engine, tmp_path):
    solve = "#!/usr/bin/env python3\nimport pathlib\nhere = pathlib.Path('/solution')\n"
    solve += "pathlib.Path('answer.txt').write_bytes((here / 'data' / 'word.bin').read_bytes())\n"
    folder = written(tmp_path / "files", {**PLAIN, "solution/solve.sh": solve})
    (folder / "solution" / "data").mkdir()
    (folder / "solution" / "data" / "word.bin").write_bytes(b"yes\n\xff")
    env = mt.make(f"harbor:{folder}")
    env.reset(seed=0)
    env.step(env.get_wrapper_attr("expert")())
    assert env.step(env.get_wrapper_attr("expert")())[1] == 1
    env.close()


def test_a_folder_without_a_solution_has_no_expert(engine, tmp_path):
    env = mt.make(f"harbor:{written(tmp_path / 'bare', {**PLAIN, 'solution/solve.sh': None})}")
    env.reset(seed=0)
    with pytest.raises(Unsupported, match="its folder has no solution"):
        env.get_wrapper_attr("expert")()
    env.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    "verifier",
    [
        "#!/bin/bash\nexit 1\n",
        "#!/bin/bash\ncurl -s https://example.com && echo 1 > /logs/verifier/reward.txt\n",
        "#!/bin/bash\necho nan > /logs/verifier/reward.txt\n",
        '#!/bin/bash\necho \'{"a": 1, "b": 1}\' > /logs/verifier/reward.json\n',
        '#!/bin/bash\necho \'{"reward": "1"}\' > /logs/verifier/reward.json\n',
        "#!/bin/bash\nmkfifo /logs/verifier/reward.txt\n",
        "#!/bin/bash\nln -s /etc/hostname /logs/verifier/reward.txt\n",
    ],
)
def test_tests_that_say_nothing_here_are_an_error_and_no_reward(engine, tmp_path, verifier):
    with pytest.raises(Broken, match="leaves no reward"):
        play(written(tmp_path / "mute", {**PLAIN, "tests/test.sh": verifier}), [SUBMIT])


def test_tests_that_the_agent_breaks_are_a_failure_and_no_error(engine, tmp_path):
    careful = "#!/bin/bash\nset -e\ncat /app/start.txt\necho 1 > /logs/verifier/reward.txt\n"
    folder = written(tmp_path / "careful", {**PLAIN, "tests/test.sh": careful})
    assert play(folder, [SUBMIT])[-1][1] == 1
    _, reward, terminated, _, info = play(folder, [bash("rm start.txt"), SUBMIT])[-1]
    assert (reward, terminated, info["success"]) == (0, True, False)


@pytest.mark.deep
def test_tests_that_take_too_long_are_stopped_and_pay_nothing(engine, tmp_path):
    slow = "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n[ ! -e slow ] || sleep 60\n"
    toml = f"{PLAIN['task.toml']}[verifier]\ntimeout_sec = 1\n"
    folder = written(tmp_path / "slow", {**PLAIN, "tests/test.sh": slow, "task.toml": toml})
    assert play(folder, [SUBMIT])[-1][1] == 1
    assert play(folder, [bash("touch slow"), SUBMIT])[-1][1] == 0


@pytest.mark.deep
def test_a_setup_that_the_agent_breaks_ends_the_episode_and_one_that_never_works_is_an_error(engine, tmp_path):
    broken = {**STEPS, "steps/fill/workdir/setup.sh": "test ! -e bad.txt\n"}
    folder = written(tmp_path / "broken", broken)
    text, _, terminated, _, info = play(folder, [bash("echo yes > dig.txt; touch bad.txt"), SUBMIT])[-1]
    assert terminated and not info["success"] and "could not be set up" in text
    never = written(tmp_path / "never", {**STEPS, "steps/fill/workdir/setup.sh": "apt-get install -y nothing\n"})
    with pytest.raises(Broken, match="or its setup"):
        play(never, [bash("echo yes > dig.txt"), SUBMIT])


@pytest.mark.deep
@pytest.mark.parametrize("solution", ["echo yes > dig.txt\n", None])
def test_a_step_that_needs_what_the_agent_has_not_done_is_a_failure_and_no_error(engine, tmp_path, solution):
    loose = {**STEPS, "steps/dig/solution/solve.sh": solution}
    loose["task.toml"] = STEPS["task.toml"].replace("min_reward = 0.5", "")
    strict = "#!/bin/bash\nset -e\ntest -s dig.txt\necho 1 > /logs/verifier/reward.txt\n"
    loose |= {"steps/fill/workdir/setup.sh": "true\n", "steps/fill/tests/test.sh": strict}
    turns = play(written(tmp_path / "tests", loose), [SUBMIT, SUBMIT, bash(SOLVED["go home"]), SUBMIT])
    assert turns[-1][1] == pytest.approx(1 / 3) and not turns[-1][4]["success"]
    _, reward, terminated, _, info = play(
        written(tmp_path / "setup", {**loose, "steps/fill/workdir/setup.sh": "cat dig.txt\n"}), [SUBMIT]
    )[-1]
    assert (reward, terminated, info["success"]) == (0, True, False)


def test_work_that_is_not_handed_in_counts_for_nothing(plain):
    *_, (_, reward, terminated, truncated, info) = play(plain, [bash("echo yes > answer.txt")] * 2, max_turns=2)
    assert (reward, terminated, truncated, info["success"]) == (0, False, True, False)


def test_a_workspace_that_is_too_full_to_hand_in_can_be_emptied(plain):
    engine = {"limits": {"workspace_mb": 8, "memory_mb": 64, "scratch_mb": 8}}
    actions = [bash("head -c 6000000 /dev/zero > big"), SUBMIT]
    assert play(plain, [*actions, bash("rm big; echo yes > answer.txt"), SUBMIT], engine=engine)[-1][1] == 1


def test_several_rewards_are_measures_and_the_one_of_that_name_counts(engine, tmp_path):
    verifier = (
        '#!/bin/bash\ncd /logs/verifier\necho \'{"reward": 0.25, "style": 0.5}\' > reward.json\necho 1 > reward.txt\n'
    )
    _, reward, _, _, info = play(written(tmp_path / "several", {**PLAIN, "tests/test.sh": verifier}), [SUBMIT])[-1]
    assert reward == 0.25 and not info["success"]
    assert info["measures"] == {"reward:reward": 0.25, "reward:style": 0.5}
    assert play(tmp_path / "several", [SUBMIT], success_from=0.2)[-1][4]["success"]


@pytest.mark.deep
def test_files_of_an_image_that_somebody_has_built_are_the_agents(engine, tmp_path):
    made = client().create_container(
        engine,
        entrypoint=[
            "sh",
            "-c",
            "mkdir -p /srv/work/deep; cd /srv/work; echo one > a; ln -s a b; echo x > deep/run; chmod +x deep/run",
        ],
        network_disabled=True,
    )["Id"]
    try:
        client().start(made)
        assert client().wait(made)["StatusCode"] == 0
        client().commit(made, "manyturn-test-harbor", "plain", changes=["WORKDIR /srv/work"])
        folder = written(
            tmp_path / "plain",
            {
                **PLAIN,
                "environment/Dockerfile": f"FROM {engine}\nRUN make all\n",
                "tests/test.sh": says().replace("/app/", "/srv/work/"),
            },
        )
        turns = play(
            folder,
            [bash("cat b; ls -l /srv/work/deep; echo yes > answer.txt"), SUBMIT],
            image="manyturn-test-harbor:{task}",
        )
        assert turns[0][0].startswith("one\n") and "rwx" in turns[0][0] and turns[1][1] == 1
    finally:
        client().remove_container(made, force=True)
        client().remove_image("manyturn-test-harbor:plain", force=True)


def test_splits_are_folders_and_one_that_there_is_not_is_refused(command, engine, tmp_path):
    for split in ("train", "test"):
        for number in range(2):
            written(tmp_path / "set" / split / f"t{number}", {**PLAIN, "instruction.md": f"{split} {number}"})
    env = mt.make(f"harbor:{tmp_path / 'set'}")
    assert env.get_wrapper_attr("splits") == ("train", "test")
    assert [task.id for task in env.get_wrapper_attr("tasks")("train")] == ["train/t0", "train/t1"]
    env.close()
    ended = command(
        "evaluate",
        "random",
        "--env",
        f"harbor:{tmp_path / 'set' / 'train'}",
        "--split",
        "test",
        "--out",
        tmp_path / "out",
    )
    assert ended.code == 2 and "test" in ended.err


def test_a_task_is_another_one_when_a_file_of_it_changes(plain):
    def content() -> str:
        env = mt.make(f"harbor:{plain}")
        [task] = env.get_wrapper_attr("tasks")("train")
        env.close()
        return task.content

    before = content()
    assert content() == before
    (plain / "tests" / "hidden.txt").write_text("another word\n")
    assert content() != before


def test_a_panel_is_data_and_runs_no_folder(command, plain, tmp_path):
    panel = tmp_path / "panel.json"
    made = command("panel", "make", f"harbor:{plain}", "--split", "train", "--out", panel)
    assert made.code == 0, made.err
    assert json.loads(panel.read_text())["env"].startswith("harbor:")
    ended = command("evaluate", "random", "--panel", panel, "--out", tmp_path / "out")
    assert ended.code == 2 and "whose scripts would run" in ended.err and "add --env" in ended.err
