"""Function bodies that stand in a statement as SQL, with semicolons of their own: BEGIN ATOMIC … END."""

from __future__ import annotations

from .lexing import words

_HEADS = {
    ("CREATE", "FUNCTION"), ("CREATE", "PROCEDURE"),
    ("CREATE", "OR", "REPLACE", "FUNCTION"), ("CREATE", "OR", "REPLACE", "PROCEDURE"),
}  # fmt: skip


class Body:
    """Follows one statement from semicolon to semicolon.

    psql counts BEGIN, CASE and END outside parentheses in statements that begin as _HEADS. BEGIN is no
    reserved word, and there are functions and columns of that name: here it counts before ATOMIC only.
    """

    def __init__(self) -> None:
        self._is_function: bool | None = None
        self._looked_at = 0
        self._depth = self._parentheses = 0

    def is_open(self, text: bytes, start: int, end: int, *, standard_strings: bool) -> bool:
        """Whether `end` lies in a body; `start` is the statement's, and `end` grows from call to call."""
        if self._is_function is None:
            self._is_function = text[start : start + 6].upper() == b"CREATE" and _is_function(text[start:end])
        if self._is_function:
            self._count(text[start + self._looked_at : end], standard_strings)
            self._looked_at = end - start
        return self._depth > 0

    def _count(self, text: bytes, standard_strings: bool) -> None:
        before = ""
        for word in words(text, standard_strings=standard_strings):
            self._parentheses += {"(": 1, ")": -1}.get(word.said, 0)
            if self._parentheses == 0:
                if (before, word.said) == ("BEGIN", "ATOMIC") or (word.said == "CASE" and self._depth):
                    self._depth += 1
                elif word.said == "END" and self._depth:
                    self._depth -= 1
            before = word.said


def _is_function(text: bytes) -> bool:
    first = [word.said for word, _ in zip(words(text), range(4), strict=False)]
    return any(tuple(first[: len(head)]) == head for head in _HEADS)
