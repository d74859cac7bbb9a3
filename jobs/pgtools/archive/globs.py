"""psql's patterns of names, matched without a regular expression of the user's, which could take for ever."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidFlags
from ..patterns import SPECIAL, problem_with, to_regexes

# Elements of a pattern; any other element is one character that stands for itself.
ONE, MANY = "one", "many"
# PostgreSQL's names have at most 63 bytes; longer ones are not looked at.
LONGEST_NAME = 1000


class NamePattern:
    """`name` or `schema.name` as psql writes them: * and ?, double quotes, letters folded outside of these.

    Raises InvalidFlags for what psql would take as another operator of a regular expression.
    """

    def __init__(self, text: str, dots: int) -> None:
        problem = problem_with(text, dots)
        if problem:
            raise InvalidFlags([f"The pattern {text!r} {problem}."])
        *schemas, name = (_elements(regex, text) for regex in to_regexes(text))
        self.text = text
        self._name = name
        self._schema = schemas[-1] if schemas else [MANY]

    def matches(self, schema: str, name: str) -> bool:
        return _fits(self._name, name) and _fits(self._schema, schema)


def exact(schema: str, name: str) -> str:
    """The pattern of one table. What a form would not take, a control character, becomes a ?."""
    return f"{_quoted(schema)}.{_quoted(name)}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return '"' + "".join(letter if letter.isprintable() else '"?"' for letter in escaped) + '"'


def _elements(regex: str, text: str) -> list[str]:
    """Out of `^(…)$` as patterns.to_regexes writes it."""
    inside = regex[2:-2]
    found: list[str] = []
    at = 0
    while at < len(inside):
        letter, following = inside[at], inside[at + 1 : at + 2]
        at += 1
        if letter == "\\" and following:
            found.append(following)
            at += 1
        elif letter == "." and following == "*":
            found.append(MANY)
            at += 1
        elif letter == ".":
            found.append(ONE)
        elif letter in SPECIAL:
            raise InvalidFlags(
                [f"The pattern {text!r} has {letter!r} in it; use * and ?, or put a name in double quotes."]
            )
        else:
            found.append(letter)
    return found


def _fits(elements: Sequence[str], name: str) -> bool:
    """On a mismatch only the last MANY is made to take one character more: that is enough."""
    if len(name) > LONGEST_NAME:
        return False
    element = at = resume = 0
    many = -1
    while at < len(name):
        expected = elements[element] if element < len(elements) else ""
        if expected == MANY:
            many, resume = element, at
            element += 1
        elif expected in (ONE, name[at]):
            element += 1
            at += 1
        elif many >= 0:
            resume += 1
            element, at = many + 1, resume
        else:
            return False
    return all(expected == MANY for expected in elements[element:])
