"""A real worker for as long as the demo needs one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from django.conf import settings

from jobs.management.demo.sample import DemoFailed

TAIL_LINES = 15
STOP_SECONDS = 60


@dataclass(frozen=True)
class DemoWorker:
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def check(self) -> None:
        """Raises DemoFailed with its last words once it has ended."""
        code = self.process.poll()
        if code is not None:
            self.log.seek(0)
            tail = "\n".join(self.log.read().decode(errors="replace").splitlines()[-TAIL_LINES:])
            raise DemoFailed(f"The worker has ended (exit {code}). Its last words:\n{tail}")


@contextmanager
def working(*queues: str) -> Iterator[DemoWorker]:
    """`runworker` for these queues, in processes of its own; stopped on leaving."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "runworker"]
    for queue in queues:
        command += ["--queue", queue]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield DemoWorker(process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
