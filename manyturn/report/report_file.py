"""A report as one file that needs nothing else: no server, no network."""

from collections.abc import Sequence
from pathlib import Path

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.report.document import comparison_document, document_of
from manyturn.report.page import static_page
from manyturn.report.report_head import ReportError


def write_report(paths: Path | Sequence[Path], out: Path | None = None, shared: bool = False) -> Path:
    """Write the report of a run or an evaluation, or of several against the first, to an HTML file.

    Args:
        paths: a folder, or several of evaluations or of runs, whose evaluations are compared.
        out: the file. Default: report.html in the folder; report.html here for several folders.
        shared: compare over the tasks that all have, where panels differ.

    Returns:
        Where the file is.
    """
    folders = [paths] if isinstance(paths, Path) else list(paths)
    if not folders:
        raise ReportError("there is nothing to report on: name the folder of a run or of an evaluation")
    if len(folders) == 1:
        document, usual = document_of(folders[0]), folders[0] / "report.html"
    else:
        document, usual = comparison_document(folders, shared), Path("report.html")
    file = out or usual
    if not file.parent.is_dir():
        raise ReportError(f"there is no folder {file.parent} to write {file.name} to: make it, or name another file")
    replace_text(file, static_page(document.plain, document.chunks()))
    return file
