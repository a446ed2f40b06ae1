"""Map the repository's folders onto one import package: envs/ -> manyturn.envs and so on."""

from setuptools import find_packages, setup

FOLDERS = ("envs", "agents", "trainers", "containers")
LINKS = [f"{folder}{below}" for folder in FOLDERS for below in ("", ".*")]
setup(
    packages=["manyturn"]
    + [f"manyturn.{room}" for room in find_packages("manyturn", exclude=LINKS)]
    + [f"manyturn.{p}" for folder in FOLDERS for p in (folder, *(f"{folder}.{sub}" for sub in find_packages(folder)))],
    package_dir={f"manyturn.{folder}": folder for folder in FOLDERS},
)
