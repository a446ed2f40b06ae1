"""The folder of an audit: its figures as JSON, its plots, and its page."""

import json
from pathlib import Path

from manyturn.audit.page import audit_page
from manyturn.audit.plots import plots
from manyturn.audit.result import CreditAudit, plain
from manyturn.envs.contract.durable import replace_text


def write_audit(audit: CreditAudit, folder: Path) -> None:
    """Write ``summary.json``, the plots and ``report.html`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / "summary.json", json.dumps(plain(audit.summary), indent=1, allow_nan=False) + "\n")
    for name, picture in plots(audit).items():
        replace_text(folder / f"{name}.svg", picture)
    replace_text(folder / "report.html", audit_page(audit))
