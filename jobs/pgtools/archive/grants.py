"""Which roles the statements of an archive name besides owners: read out of what pg_dump wrote, never run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile

from .sql import LONGEST, Token, beginning

STARTS = frozenset({"TO", "FROM"})
ENDS = frozenset({"WITH", "USING"})
SEMICOLON, COMMA = Token("sign", ";"), Token("sign", ",")
NOBODY = frozenset({"PUBLIC", "GROUP", "CURRENT_USER", "SESSION_USER", "CURRENT_ROLE"})


def grantees(kind: str, definition: str) -> set[str]:
    """Without PUBLIC. Kinds other than ACL, DEFAULT ACL, POLICY and USER MAPPING name none."""
    if kind in {"ACL", "DEFAULT ACL"}:
        return {role for statement in _statements(definition) for role in _of_grant(statement)}
    if kind == "POLICY":
        return set(_after(list(takewhile(_before_expression, beginning(definition))), frozenset({"TO"})))
    if kind == "USER MAPPING":
        return {role.value for role in islice(beginning(definition), 4, 5) if role.keyword not in NOBODY}
    return set()


def _of_grant(statement: list[Token]) -> list[str]:
    """GRANT … TO roles, REVOKE … FROM roles, each also after ALTER DEFAULT PRIVILEGES FOR ROLE name; and
    SET SESSION AUTHORIZATION role, which pg_dump writes around what another than the owner granted."""
    words = [token.keyword for token in statement]
    if words[:3] == ["SET", "SESSION", "AUTHORIZATION"]:
        return [token.value for token in statement[3:4] if token.keyword != "DEFAULT"]
    found = _after(statement, STARTS)
    if words[:5] == ["ALTER", "DEFAULT", "PRIVILEGES", "FOR", "ROLE"]:
        found += [token.value for token in statement[5:6]]
    return found


def _after(statement: list[Token], starts: frozenset[str]) -> list[str]:
    """The names after the last of these words, up to what ends a list of roles."""
    at = max((n for n, token in enumerate(statement) if token.keyword in starts), default=len(statement))
    roles = takewhile(lambda token: token != SEMICOLON and token.keyword not in ENDS, statement[at + 1 :])
    return [role.value for role in roles if role != COMMA and role.keyword not in NOBODY]


def _before_expression(token: Token) -> bool:
    """Expressions of a policy come last, so what they hold is not looked at."""
    return token.keyword not in {"USING", "WITH"}


def _statements(definition: str) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in beginning(definition):
        if token == SEMICOLON:
            yield statement
            statement = []
        else:
            statement.append(token)
    if len(definition) <= LONGEST:  # else it is cut, perhaps in the middle of a name
        yield statement
