"""Cuts a script into statements and COPY data, as psql does, with nothing of psql's there to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .commands import command
from .copying import data, direction, skip_rest_of_line
from .cutting import is_separator, next_statement, skip_blank
from .items import Connect, Item, Statement
from .source import Source


class Scanner:
    """The items of a script, one after the other; each is looked for when it is asked for.

    So whoever runs them can say, before the next, how strings are to be read from here on:
    `standard_strings` (standard_conforming_strings) and `encoding` (client_encoding as the server names it).
    Raises ScriptError at what is no SQL.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._source = Source(chunks)
        self.standard_strings = True

    @property
    def encoding(self) -> str:
        return self._source.encoding

    @encoding.setter
    def encoding(self, name: str) -> None:
        self._source.encoding = name

    def __iter__(self) -> Iterator[Item]:
        source = self._source
        while skip_blank(source):
            line = source.line
            if source.seen.startswith(b"\\", source.start) and not is_separator(source, 0):
                connect = self._command()
                if connect:
                    yield connect
                continue
            text = next_statement(source, standard_strings=self.standard_strings)
            takes_data = direction(text) == "in"
            if takes_data:
                skip_rest_of_line(source)
            if text:
                yield Statement(line, text, takes_data)
            if takes_data:
                yield from data(source, line)

    def _command(self) -> Connect | None:
        source = self._source
        while (end := source.text.find(b"\n", source.start) + 1) == 0 and source.more():
            pass
        line = source.line
        text = source.text[source.start : end or len(source.text)]
        source.advance(source.start + len(text))
        return command(text, line)
