"""The text that a scanner looks at: a window on the input, moved along."""

from __future__ import annotations

from collections.abc import Iterable

from .encodings import is_doubtful, masked
from .errors import ScriptError

LONGEST_STATEMENT = 64 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source:
    """`text[start:]` is what is not yet handed out, `line` the number of its first line, counted from 1."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.text = b""
        self.start = 0
        self.line = 1
        self.ended = False
        self._chunks = iter(chunks)
        self._encoding = "UTF8"
        self._seen: bytes | None = None
        while len(self.text) < len(BYTE_ORDER_MARK) and self.more():
            pass
        if self.text.startswith(BYTE_ORDER_MARK):
            self.start = len(BYTE_ORDER_MARK)

    @property
    def seen(self) -> bytes:
        """The text as it is to be looked at: of the same length, from `start` on without doubtful bytes."""
        if not is_doubtful(self._encoding):
            return self.text
        if self._seen is None:
            self._seen = self.text[: self.start] + masked(self.text[self.start :], self._encoding)
        return self._seen

    @property
    def encoding(self) -> str:
        """The text's from `start` on, as the server names client_encoding."""
        return self._encoding

    @encoding.setter
    def encoding(self, name: str) -> None:
        if name != self._encoding:
            self._encoding, self._seen = name, None

    def more(self) -> bool:
        """Add input and drop what was handed out, so that `start` is 0; False at the end of the input.

        Takes at least as much as waits already: who looks again from the start each time takes linear time.
        """
        waiting = self.text[self.start :]
        if len(waiting) > LONGEST_STATEMENT:
            raise ScriptError(
                self.line, f"a statement of more than {LONGEST_STATEMENT >> 20} MB, or text that is no SQL."
            )
        pieces, length = [waiting], 0
        while not self.ended and length <= len(waiting):
            piece = next(self._chunks, None)
            self.ended = piece is None
            pieces.append(piece or b"")
            length += len(piece or b"")
        self.text, self.start = b"".join(pieces), 0
        self._seen = None
        return length > 0

    def advance(self, end: int) -> None:
        """Hand out up to the position `end` of the text."""
        self.line += self.text.count(b"\n", self.start, end)
        self.start = end
