"""A package outside the repository that announces a plugin, as an installer would leave it on the disk."""

from pathlib import Path


def install(site: Path, name: str, source: str) -> Path:
    """Write the package NAME with one module into a folder, which must be on the path of who is to find it."""
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(source, encoding="utf-8")
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[manyturn.plugins]\n{name} = {name}\n")
    return site
