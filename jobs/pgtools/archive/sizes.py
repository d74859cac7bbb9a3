"""How many bytes of an artifact the data of each entry take, where the container tells."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from ..errors import DamagedArchive
from .toc import Toc

DATA = re.compile(r"([0-9]{1,10})\.dat(?:\.[a-z0-9]{1,4})?")
LARGE_OBJECT = re.compile(r"blob_([0-9]{1,10})\.dat(?:\.[a-z0-9]{1,4})?")


def from_offsets(toc: Toc, size: int) -> dict[int, int]:
    """Of a custom archive of `size` bytes: pg_dump writes where data begin only into files it can seek in.

    Raises DamagedArchive when data would begin behind the archive's end.
    """
    starts = sorted((entry.data_at, entry.dump_id) for entry in toc.entries if entry.data_at is not None)
    if starts and starts[-1][0] >= size:
        raise DamagedArchive(
            "The archive breaks off before its end. Take another copy, or make the dump anew."
        )
    return {dump_id: end - start for (start, dump_id), (end, _) in pairwise([*starts, (size, 0)])}


def from_members(toc: Toc, found: Mapping[str, int]) -> dict[int, int]:
    """Of a directory or tar archive: `found` is name of the file -> its size."""
    sizes: dict[int, int] = defaultdict(int)
    owners = _large_objects(toc)
    for name, size in found.items():
        if data := DATA.fullmatch(name):
            sizes[int(data[1])] += size
        elif (large := LARGE_OBJECT.fullmatch(name)) and owners:
            sizes[owners.get(int(large[1]), owners[0])] += size
    return {dump_id: size for dump_id, size in sizes.items() if dump_id in toc.by_id}


def _large_objects(toc: Toc) -> dict[int, int]:
    """Oid -> the BLOBS entry whose data it is; 0 -> that of all others. Before version 1.16 there is one."""
    owners: dict[int, int] = {}
    for entry in toc.entries:
        if entry.kind == "BLOBS":
            owners.setdefault(0, entry.dump_id)
            for of in entry.depends_on:
                listed = toc.by_id.get(of)
                if listed and listed.kind == "BLOB METADATA":
                    oids = listed.definition.split()
                    owners |= {int(oid): entry.dump_id for oid in oids if oid.isascii() and oid.isdigit()}
    return owners
