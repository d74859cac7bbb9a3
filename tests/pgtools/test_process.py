from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.pgtools.errors import ToolFailed
from jobs.pgtools.process import Child, spawn
from tests.waiting import until

from .conftest import Place

ENV = {"PATH": os.defpath}
FAMILY = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
WORKER = """
import os, sys
from pathlib import Path
from jobs.pgtools.process import spawn
child = spawn(["sleep", "600"], {"PATH": os.defpath}, cwd=Path("/"))
print(child.pid, flush=True)
child.wait()
"""


def python(script: str, folder: Path, **options: object) -> Child:
    return spawn([sys.executable, "-c", script], ENV, cwd=folder, **options)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_tool_gets_exactly_the_environment_given(tmp_path: Path) -> None:
    with spawn(["env"], {**ENV, "ONE": "1"}, cwd=tmp_path) as child:
        assert set(child.stdout.read(4096).split()) == {b"ONE=1", f"PATH={os.defpath}".encode()}
        assert child.wait() == 0


def test_stdin_reaches_the_tool_and_its_end_too(tmp_path: Path) -> None:
    with spawn(["cat"], ENV, cwd=tmp_path, stdin=True) as child:
        child.stdin.write(b"hello")
        child.stdin.close()
        assert child.stdout.read(100) == b"hello"
        child.check()


def test_kill_ends_the_whole_group_even_if_it_ignores_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.pgtools.process.TERM_SECONDS", 0.2)
    with python(FAMILY, tmp_path) as child:
        helper = int(child.stdout.read(100))
        assert alive(helper)
        child.kill()
        child.kill()
        assert child.returncode == -9
    until(lambda: not alive(helper), "the helper is gone")


def test_a_block_that_fails_leaves_no_process(tmp_path: Path) -> None:
    pids: list[int] = []

    def fail() -> None:
        with spawn(["sleep", "600"], ENV, cwd=tmp_path) as child:
            pids.append(child.pid)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not alive(pids[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_a_tool_dies_with_a_killed_worker() -> None:
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, cwd=root) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        assert alive(pid)
        worker.kill()
        until(lambda: not alive(pid), "the tool is gone")


def test_kill_from_another_thread_ends_the_wait(tmp_path: Path) -> None:
    with spawn(["sleep", "600"], ENV, cwd=tmp_path) as child:
        threading.Thread(target=child.kill).start()
        assert child.wait() == -15
        with pytest.raises(ToolFailed, match="sleep was ended by SIGTERM"):
            child.check()


def test_stderr_is_drained_masked_and_bounded(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "for n in range(60000): print('line', n, 's3cret', file=sys.stderr)\n"
        "sys.stderr.write('x' * 5_000_000 + chr(10) + 'last')\n"
    )
    lines: list[str] = []
    with python(script, tmp_path, on_line=lines.append, secrets=["s3cret"]) as child:
        assert child.wait() == 0
        log = child.log
    assert len(lines) == 60002
    assert (lines[0], lines[-1]) == ("line 0 ••••", "last")
    assert "s3cret" not in log
    assert len(log) < 20_000


def test_a_failing_listener_does_not_stop_the_tool_and_is_reported(tmp_path: Path) -> None:
    def fail(line: str) -> None:
        raise KeyError(line)

    script = "import sys\nfor n in range(9999): print('x' * 100, file=sys.stderr)\nprint('done')"
    with python(script, tmp_path, on_line=fail) as child:
        assert child.stdout.read(100) == b"done\n"
        with pytest.raises(KeyError):
            child.wait()


def test_a_tool_that_is_not_there_is_a_failed_tool(tmp_path: Path) -> None:
    with (
        pytest.raises(ToolFailed, match="no_such_tool"),
        spawn([str(tmp_path / "no_such_tool")], ENV, cwd=tmp_path) as child,
    ):
        child.check()


def test_memory_stays_flat_while_a_stream_passes(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    passed = 0
    with spawn(["head", "-c", "300000000", "/dev/zero"], ENV, cwd=tmp_path) as child:
        while data := child.stdout.read(1 << 20):
            passed += len(data)
        child.check()
    assert passed == 300_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000


def test_a_killed_dump_leaves_no_session_at_the_server(shop: Place) -> None:
    env = shop.conninfo.environment(shop.folder, "pgbr/killed") | shop.toolset.environment()
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbr/killed'"
    with shop.connect() as holder, shop.connect() as watcher, holder.transaction():
        holder.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")

        def sessions() -> int:
            row = watcher.execute(count).fetchone()
            return int(row[0]) if row else 0

        with spawn([str(shop.toolset.tool("pg_dump"))], env, cwd=shop.folder) as child:
            until(lambda: sessions() == 1, "pg_dump waits for the lock")
            child.kill()
            until(lambda: sessions() == 0, "its session is gone")
