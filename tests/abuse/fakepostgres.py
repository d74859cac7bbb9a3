"""A server that speaks PostgreSQL's protocol up to its first answers, which are as hostile as asked for."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

COLUMNS = {
    "version_num": (23, b"170002"), "version": (25, b"17.2"), "dbname": (25, b"x"), "in_recovery": (16, b"f"),
    "encoding": (25, b"UTF8"), "collate": (25, b"C"), "ctype": (25, b"C"), "provider": (25, b"c"),
    "locale": (25, b""), "owner": (25, b"o"), "superuser": (16, b"f"), "reads_role_passwords": (16, b"f"),
    "oid": (26, b"5"), "settings": (1009, b"{}"), "extensions": (114, b"{}"),
}  # fmt: skip
CANCEL_REQUEST = 80877102
Answers = dict[str, tuple[int, bytes]]


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


NOTICES = message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mx\0\0") * 500


class FakePostgres:
    """`facts` replaces columns of what `server.inspect` asks; `after_login` hangs or chatters for ever. A
    request to cancel is never answered."""

    def __init__(self, facts: Answers, after_login: str = "") -> None:
        self._row = {name: facts.get(name, value) for name, value in COLUMNS.items()}
        self._after_login = after_login
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            for pid in range(1, 10**6):
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client, pid), daemon=True).start()

    def _serve(self, client: socket.socket, pid: int) -> None:
        with suppress(OSError, struct.error), client, client.makefile("rb") as stream:
            while (code := struct.unpack("!I", self._packet(stream)[:4])[0]) in (80877103, 80877104):
                client.sendall(b"N")
            if code == CANCEL_REQUEST:
                stream.read()  # ends when the client gives up
                return
            settings = b"client_encoding\0UTF8\0", b"standard_conforming_strings\0on\0"
            client.sendall(
                message(b"R", struct.pack("!I", 0)) + b"".join(message(b"S", one) for one in settings)
                + message(b"K", struct.pack("!II", pid, 1)) + message(b"Z", b"I")
            )  # fmt: skip
            mark = b""
            while kind := stream.read(1):
                query = self._packet(stream).decode().strip("\0").lower()
                if kind == b"P":
                    self._misbehave(client)
                if kind != b"Q" and not (kind == b"P" and query):
                    if kind == b"S":
                        client.sendall(message(b"Z", b"T"))
                    continue
                if "set pgbr.probe = '" in query:
                    mark = query.split("'")[1].encode()
                if kind == b"Q":
                    self._misbehave(client)
                client.sendall(self._answer(query, kind == b"P", pid, mark))

    def _packet(self, stream: object) -> bytes:
        length = struct.unpack("!I", stream.read(4))[0]  # type: ignore[attr-defined]
        return stream.read(length - 4)  # type: ignore[attr-defined, no-any-return]

    def _misbehave(self, client: socket.socket) -> None:
        while self._after_login:
            if self._after_login == "chatters":
                client.sendall(NOTICES)
            else:
                time.sleep(60)

    def _answer(self, query: str, extended: bool, pid: int, mark: bytes) -> bytes:
        columns: Answers = {}
        if "pg_backend_pid" in query:
            columns = {"p": (23, b"%d" % pid), "s": (25, b"x"), "m": (25, mark)}
        elif "version_num" in query:
            columns = self._row
        elif query.startswith("select 1"):
            columns = {"a": (23, b"1")}
        elif "pg_database_size" in query:
            columns = {"size": (20, b"1")}
        elif query.startswith("select"):
            columns = {"yes": (16, b"t")}
        tag = {"begin": b"BEGIN", "commit": b"COMMIT", "rollback": b"ROLLBACK"}.get(
            query[:8].strip("; "), b"SET"
        )
        parts = message(b"1") + message(b"2") if extended else b""
        if columns:
            heads = [name.encode() + b"\0" + struct.pack("!IhIhih", 0, 0, oid, -1, -1, 0)
                     for name, (oid, _) in columns.items()]  # fmt: skip
            cells = [struct.pack("!i", len(value)) + value for _, value in columns.values()]
            parts += message(b"T", struct.pack("!H", len(heads)) + b"".join(heads))
            parts += message(b"D", struct.pack("!H", len(cells)) + b"".join(cells))
            tag = b"SELECT 1"
        elif extended:
            parts += message(b"n")
        parts += message(b"C", tag + b"\0")
        return parts if extended else parts + message(b"Z", b"I" if tag in (b"COMMIT", b"ROLLBACK") else b"T")
