"""Small task folders of Harbor, as tests write them."""

from collections.abc import Mapping
from pathlib import Path

from manyturn.containers.engine.images import NAME

HEAD = 'schema_version = "1.4"\n[task]\nname = "ours/made"\n'
DOCKERFILE = f"# a comment\nFROM {NAME}\nWORKDIR /app\nENV GREETING='hi \\\n  there'\nCOPY start.txt ./\n"
SAYS = """\
#!/bin/bash
read -r found < /app/{file}
if [ "$found" = {word} ]; then echo 1; else echo {less}; fi > /logs/verifier/reward.txt
"""
CANARY = "<!-- canary string of a benchmark -->\n\n"


def says(file: str = "answer.txt", word: str = "yes", less: str = "0") -> str:
    """A verifier: 1 if the first line of a file is a word."""
    return SAYS.format(file=file, word=word, less=less)


PLAIN = {
    "task.toml": f'{HEAD}[environment]\nnetwork_mode = "no-network"\ncpus = 1\n[agent]\ntimeout_sec = 5.0\n',
    "instruction.md": f"{CANARY}Write yes into answer.txt.\n",
    "environment/Dockerfile": DOCKERFILE,
    "environment/start.txt": "begin\n",
    "tests/test.sh": says(),
    "tests/hidden.txt": "the-hidden-word\n",
    "solution/solve.sh": "#!/bin/bash\necho yes > answer.txt\n",
}
STEPS = {
    "task.toml": HEAD
    + "".join(f"[[steps]]\nname = {step}\n" for step in ("'dig'\nmin_reward = 0.5", "'fill'", "'go home'")),
    "environment/Dockerfile": DOCKERFILE,
    "environment/start.txt": "begin\n",
    "tests/common.txt": "the-hidden-word\n",
    "steps/dig/instruction.md": "Write yes into dig.txt.\n",
    "steps/dig/tests/test.sh": says("dig.txt"),
    "steps/dig/solution/solve.sh": "echo yes > dig.txt\n",
    "steps/fill/instruction.md": "Write what staged.txt says into fill.txt.\n",
    "steps/fill/workdir/staged.txt": "sand\n",
    "steps/fill/workdir/setup.sh": "tr a-z A-Z < dig.txt > shout.txt\n",
    "steps/fill/tests/test.sh": says("fill.txt", "sand", less="0.4"),
    "steps/fill/solution/solve.sh": "cp staged.txt fill.txt\n",
    "steps/go home/instruction.md": "Write yes into home.txt.\n",
    "steps/go home/tests/test.sh": says("home.txt"),
    "steps/go home/solution/solve.sh": "echo yes > home.txt\n",
}


def written(folder: Path, files: Mapping[str, str | None]) -> Path:
    """A folder with these files; None leaves one out."""
    for path, text in files.items():
        if text is not None:
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return folder
