"""A sandbox as many are: root in a container on the host's network, a new process of the engine's for each command.

The signs have to show here, or they would show nowhere. Only attacks that take little may be made on it.
"""

import io
import secrets
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from manyturn.containers.engine import owner
from manyturn.containers.engine.container_engine import LABEL, client, remove
from manyturn.containers.sandbox import WORKSPACE, Ran, SandboxRefused, Snapshot


class NaiveSandbox:
    """See Sandbox. What it promises it does not keep.

    Args:
        shared: a folder of the host's that it can write to.
    """

    def __init__(self, image: str, shared: Path) -> None:
        self.name, self.agent = f"manyturn-naive-{secrets.token_hex(4)}", 1000
        self._image, self._shared = image, str(shared)

    def start(self) -> None:
        host = client().create_host_config(
            auto_remove=True,
            network_mode="host",
            tmpfs={WORKSPACE: "exec", "/tmp": "exec"},
            binds={self._shared: {"bind": self._shared, "mode": "rw"}},
            security_opt=["seccomp=unconfined"],
        )
        labels = {LABEL: "1", **owner.this_process().labels}
        client().create_container(
            self._image, ["sleep", "300"], name=self.name, labels=labels, host_config=host, stdin_open=True
        )
        client().start(self.name)

    def run(
        self,
        script: str,
        *,
        seconds: float = 30.0,
        folder: str = WORKSPACE,
        environ: Mapping[str, str] | None = None,
        report: bool = False,
    ) -> Ran:
        command = ["timeout", "-k", "6", str(seconds), "bash", "-c", script]
        began = time.monotonic()
        output, status = self._execute(command, dict(environ or {}), folder)
        return Ran(status, output.decode("utf-8", "replace"), time.monotonic() - began)

    def read(self, path: str, limit: int = 1_000_000) -> bytes:
        output, status = self._execute(["cat", path], {}, WORKSPACE)
        if status:
            raise SandboxRefused(output.decode("utf-8", "replace"))
        return output

    def write(self, path: str, content: bytes) -> None:
        folder, _, name = f"{WORKSPACE}/{path}".rpartition("/")
        self._execute(["mkdir", "-p", folder], {}, "/")
        self._put(folder, name, content)

    def snapshot(self) -> Snapshot:
        output, _ = self._execute(["tar", "-c", "."], {}, WORKSPACE)
        return Snapshot("", output)

    def restore(self, snapshot: Snapshot) -> None:
        self._execute(["bash", "-c", f"rm -rf {WORKSPACE}/*"], {}, "/")
        self._put("/opt", "snapshot.tar", snapshot.archive)
        output, status = self._execute(["tar", "-xPf", "/opt/snapshot.tar"], {}, WORKSPACE)
        if status:
            raise SandboxRefused(output.decode("utf-8", "replace"))

    def stop(self) -> None:
        remove(self.name)

    def _execute(self, command: list[str], environ: dict[str, str], folder: str) -> tuple[bytes, int]:
        made = client().exec_create(self.name, command, environment=environ, workdir=folder)
        output = client().exec_start(made)
        return output, client().exec_inspect(made)["ExitCode"]

    def _put(self, folder: str, name: str, content: bytes) -> None:
        """By way of the image: what the engine copies does not reach file systems in memory."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        client().put_archive(self.name, "/opt", archive.getvalue())
        if folder != "/opt":
            self._execute(["mv", f"/opt/{name}", folder], {}, "/")
