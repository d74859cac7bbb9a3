"""An artifact on this machine's disk: whole and compared with its record before anything is done with it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.pgtools.archive.codec import decompressed
from jobs.pgtools.archive.unpack import unpack
from jobs.processors.base import JobFailed
from jobs.processors.load import Load
from jobs.processors.stored import Checked, Stored
from jobs.scratch import RESERVE_BYTES
from jobs.units import in_bytes

LOOK_BYTES = 32 * 2**20  # between two looks at the free space


@dataclass
class Room:
    """The free space of a folder's disk. A few kilobytes can unpack to more than any disk."""

    folder: Path
    _granted: int = 0

    def take(self, count: int) -> None:
        """Before `count` more bytes are written; raises `JobFailed` when they do not fit."""
        if count <= self._granted:
            self._granted -= count
            return
        free = shutil.disk_usage(self.folder).free
        if free < RESERVE_BYTES + count + LOOK_BYTES:
            raise JobFailed(
                f"The artifact does not fit into the scratch folder {self.folder.parent} once it is "
                f"unpacked: {in_bytes(free)} are free there by now. Free space, or restore with jobs set "
                "to 1, which streams the custom format."
            )
        self._granted = LOOK_BYTES


def stage(stored: Stored, load: Load, folder: Path, checked: Checked) -> Path:
    """The file, or for a directory dump the folder, to restore from; whole. Raises `StoreError`, `JobFailed`,
    `PgToolsError`, `Stopped`."""
    contents, control, room = load.contents, load.control, Room(folder)
    path = folder / "artifact"
    if contents.codec == "none" and contents.format != "directory" and stored.store.link(stored.key, path):
        checked.read_file(path)
        control.check()
        return path
    chunks = decompressed(load.counted(checked), contents.codec)
    if contents.format == "directory":
        path = unpack(chunks, folder / "dump", room=room.take, stop=control.stopped)
    else:
        _write(path, chunks, room)
    for _ in checked:  # what follows the end of a tar belongs to the object, too
        control.check()
    control.check()
    checked.require_whole()
    load.restart_counting()
    return path


def _write(path: Path, chunks: Iterator[bytes], room: Room) -> None:
    with open(path, "xb", buffering=0) as file:
        for chunk in chunks:
            room.take(len(chunk))
            file.write(chunk)
