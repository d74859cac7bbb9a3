"""Writes archives and tar files that no honest tool writes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Sequence
from typing import Any


def integer(number: int) -> bytes:
    return bytes([number < 0]) + abs(number).to_bytes(4, "little")


def string(text: str | bytes | None) -> bytes:
    if text is None:
        return integer(-1)
    raw = text if isinstance(text, bytes) else text.encode()
    return integer(len(raw)) + raw


def entry(dump_id: int = 1, kind: str | bytes = "TABLE", name: str | bytes = "t", **other: Any) -> bytes:
    """One of a toc.dat of version 1.14; `deps` are written as they are."""
    parts = [integer(dump_id), integer(other.get("has_data", 0)), string("0"), string("0")]
    parts += [string(name), string(kind), integer(other.get("section", 2))]
    parts += [
        string(other.get("definition", "")),
        string(other.get("drop", "")),
        string(other.get("copy", "")),
    ]
    parts += [string(other.get("schema", "public")), string(other.get("tablespace", "")), string("heap")]
    parts += [string(other.get("owner", "ada")), string("false")]
    parts += [string(dependency) for dependency in other.get("deps", ())] + [string(None)]
    return b"".join([*parts, string(other.get("file", ""))])


def toc(entries: Sequence[bytes] = (), count: int | None = None, **other: Any) -> bytes:
    """A toc.dat; `version`, `sizes` and `format` are bytes of its head."""
    version, sizes = other.get("version", (1, 14, 0)), other.get("sizes", (4, 8))
    head = b"PGDMP" + bytes([*version, *sizes, other.get("format", 3)]) + integer(0)
    head += b"".join(integer(number) for number in other.get("created", (1, 2, 3, 4, 5, 126, 0)))
    head += string(other.get("dbname", "shop")) + string("14.23") + string("14.23 (Debian)")
    return head + integer(len(entries) if count is None else count) + b"".join(entries)


def tar(members: Iterable[tuple[str, bytes]], **header: Any) -> bytes:
    """Of names and contents; `header` are attributes of each header."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=header.pop("format", tarfile.PAX_FORMAT)) as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for attribute, value in header.items():
                setattr(info, attribute, value)
            file.addfile(info, io.BytesIO(content))
    return packed.getvalue()
