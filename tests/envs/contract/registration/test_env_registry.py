"""Names must lead to environments, and a wrong name to the right one."""

import subprocess
import sys

import gymnasium
import pytest

import manyturn
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.registration.env_registry import NeedsSetup, UnknownEnv, env_ids, make
from manyturn.envs.contract.registration.id_registration import register

pytestmark = pytest.mark.versions


def test_a_misspelt_id_names_the_nearest():
    with pytest.raises(UnknownEnv, match="did you mean manyturn/GuessNumber-v0"):
        make("manyturn/GuesNumber-v0")


def test_an_id_that_resembles_none_sends_nobody_to_an_unrelated_environment():
    for name in ("me/Safe-v0", "manyturn/Doors-v0", "x-v0"):
        with pytest.raises(UnknownEnv, match="lists the ids of manyturn and of installed plugins") as refused:
            make(name)
        assert "did you mean" not in str(refused.value) and "FILE.py:Class" in str(refused.value)


def test_a_file_without_the_class_lists_what_it_defines(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import gymnasium\nclass Mine(gymnasium.Env):\n    pass\n")
    assert type(make(f"{file}:Mine")).__name__ == "Mine"
    with pytest.raises(UnknownEnv, match="it defines Mine"):
        make(f"{file}:Mein")
    with pytest.raises(UnknownEnv, match=r"FILE\.py:NAME"):
        make(f"{tmp_path / 'no.py'}:Mine")


def test_a_file_without_a_class_is_read_and_not_run(tmp_path):
    file, ran = tmp_path / "mine.py", tmp_path / "ran"
    file.write_text(f"import gymnasium\nopen({str(ran)!r}, 'w')\nclass Mine(gymnasium.Env):\n    pass\n")
    with pytest.raises(UnknownEnv, match=r"mine\.py is a file: name its class, \S+mine\.py:Mine$"):
        make(str(file))
    file.write_text("print('no class')\n")
    with pytest.raises(UnknownEnv, match="defines no environment"):
        make(str(file))
    with pytest.raises(UnknownEnv, match=r"FILE\.py:Class"):
        make(str(tmp_path / "no.py"))
    assert not ran.exists()


def test_a_file_that_failed_to_load_leaves_nothing_behind_and_loads_once_it_is_mended(tmp_path):
    file = tmp_path / "half_written.py"
    file.write_text("raise RuntimeError('half written')\n")
    with pytest.raises(RuntimeError, match="half written"):
        make(f"{file}:Mine")
    assert not [name for name in sys.modules if name.startswith("manyturn_file_half_written")]
    file.write_text("import gymnasium\nclass Mine(gymnasium.Env):\n    number = 1\n")
    assert make(f"{file}:Mine").number == 1


def test_registering_twice_is_allowed_and_registering_another_thing_is_not():
    register("regtest/One-v0", "some.module:One", size=3)
    register("regtest/One-v0", "some.module:One", size=3)
    with pytest.raises(ValueError, match="choose another name"):
        register("regtest/One-v0", "some.module:Two", size=3)
    with pytest.raises(ValueError, match="choose another name"):
        register("regtest/One-v0", "some.module:One", size=4)


def test_gymnasium_make_and_ours_give_the_same_class():
    ours, theirs = make("manyturn/GuessNumber-v0"), gymnasium.make("manyturn/GuessNumber-v0")
    assert type(ours.unwrapped) is type(theirs.unwrapped)
    assert isinstance(ours.unwrapped, TextEnv)
    assert "manyturn/GuessNumber-v0" in env_ids()


def test_every_registered_environment_can_be_made_and_reset():
    for name in (name for name in env_ids() if name.startswith("manyturn/")):  # tests register others
        try:
            env = manyturn.make(name)
        except NeedsSetup as reason:
            assert any(mend in str(reason) for mend in ("give data=", "give rows=", "install", "need containers"))
            continue
        text, info = env.reset(seed=1)
        env.close()
        assert text and info["split"] == env.unwrapped.split, name


def test_importing_the_package_imports_no_environment_and_no_torch():
    code = "import sys, manyturn; print([m for m in sys.modules if m == 'torch' or m.startswith('manyturn.envs.cl')])"
    out = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
