"""From the saved globals of a server to statements that create some of its roles on another one.

What pg_dumpall wrote is taken apart and put together anew from names and values: nothing else of it is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import pairwise

from .archive.entry import CLIENT_ENCODING, Texts
from .archive.sql import Token, tokens
from .errors import PgToolsError

# Only a superuser may give these; for others from 16 on even taking them away is refused.
GIFTS = ("SUPERUSER", "CREATEROLE", "CREATEDB", "REPLICATION", "BYPASSRLS")
PLAIN = frozenset({"INHERIT", "NOINHERIT", "LOGIN", "NOLOGIN"})
HEAD_BYTES = 10_000
SEMICOLON = Token("sign", ";")


class RolesNotSaved(PgToolsError):
    """Roles that the globals do not hold."""


@dataclass(frozen=True)
class RoleStatement:
    """One statement about `role`. `sql` may hold the hash of a password. `softened`: the role had rights that
    are not given to it here. `optional`: a refusal leaves the role without a setting or membership, but
    there."""

    role: str
    sql: str = field(repr=False)
    softened: bool = False
    optional: bool = False


def statements_for(globals_sql: bytes, roles: Set[str], *, superuser: bool = False) -> list[RoleStatement]:
    """CREATE ROLE with all attributes for each of `roles`, then their settings, then who of them is a member
    of whom; all roles first, so that any order of names works.

    Nobody becomes a superuser. `superuser`: whether a superuser will run them; else no role gets any of
    GIFTS, and each is granted to whoever runs this, without which its objects could not be given to it.
    Raises RolesNotSaved.
    """
    created: dict[str, RoleStatement] = {}
    settings: list[RoleStatement] = []
    members: list[RoleStatement] = []
    for statement in _statements(globals_sql):
        first, second, _, fourth = [*(token.keyword for token in statement[:4]), "", "", "", ""][:4]
        name = statement[2].value if len(statement) > 2 and second == "ROLE" else ""
        if first == "CREATE" and name in roles:
            created.setdefault(name, RoleStatement(name, f"CREATE ROLE {_identifier(name)}"))
        elif (first, fourth) == ("ALTER", "WITH") and name in created:
            created[name] = _with_attributes(name, statement[4:], superuser=superuser)
        elif (first, fourth) == ("ALTER", "SET") and name in created:
            settings.append(RoleStatement(name, _rendered(statement), optional=True))
        elif first == "GRANT":
            members += _membership(statement, roles)
    if lacking := sorted(roles - created.keys()):
        raise RolesNotSaved(
            f"The saved globals do not hold {', '.join(map(_identifier, lacking))}. Create what is missing "
            "by hand, or restore without owners and privileges."
        )
    own = [] if superuser else [_granted_to_self(role) for role in created]
    return [*created.values(), *own, *settings, *members]


def _statements(globals_sql: bytes) -> Iterator[list[Token]]:
    texts = Texts()
    for match in CLIENT_ENCODING.finditer(globals_sql[:HEAD_BYTES].decode("ascii", "replace")):
        texts.learn(match[0])
    statement: list[Token] = []
    for token in tokens(texts(globals_sql)):
        if token == SEMICOLON:
            yield statement
            statement = []
        else:
            statement.append(token)


def _with_attributes(name: str, attributes: list[Token], *, superuser: bool) -> RoleStatement:
    kept: list[str] = []
    softened = False
    for at, token in enumerate(attributes):
        following = attributes[at + 1 :]
        gift = token.keyword.removeprefix("NO")
        if token.keyword in PLAIN:
            kept.append(token.keyword)
        elif gift in GIFTS:
            refused = token.keyword == gift and (gift == "SUPERUSER" or not superuser)
            softened = softened or refused
            kept += [f"NO{gift}" if refused else token.keyword] if superuser else []
        elif token.keyword == "LIMIT":
            kept.append(f"CONNECTION LIMIT {''.join(part.value for part in following[:2] if _numeric(part))}")
        elif token.keyword in ("PASSWORD", "UNTIL") and following and following[0].kind == "text":
            words = "PASSWORD" if token.keyword == "PASSWORD" else "VALID UNTIL"
            kept.append(f"{words} {_literal(following[0].value)}")
    return RoleStatement(name, f"CREATE ROLE {_identifier(name)} WITH {' '.join(kept)}", softened)


def _membership(statement: list[Token], roles: Set[str]) -> Iterator[RoleStatement]:
    """`GRANT role TO member [WITH …] [GRANTED BY …]` where both are of those, whoever granted it."""
    if len(statement) < 4 or statement[2].keyword != "TO":
        return
    role, member = statement[1].value, statement[3].value
    if not {role, member} <= roles:
        return
    words = [token.keyword for token in statement[4:]]
    options = ["ADMIN OPTION"] if "ADMIN" in words else []
    # True is the default of these two, and before 16 there is nothing else.
    options += [f"{word} FALSE" for word, said in pairwise(words) if said == "FALSE"]
    sql = f"GRANT {_identifier(role)} TO {_identifier(member)}"
    yield RoleStatement(member, f"{sql} WITH {', '.join(options)}" if options else sql, optional=True)


def _granted_to_self(role: str) -> RoleStatement:
    return RoleStatement(role, f"GRANT {_identifier(role)} TO CURRENT_USER")


def _numeric(token: Token) -> bool:
    return token.kind == "number" or token == Token("sign", "-")


def _rendered(statement: Iterable[Token]) -> str:
    """Each token quoted anew. A text with escapes has its E as a word before it."""
    parts: list[str] = []
    for token in statement:
        escaped = token.kind == "text" and parts[-1:] == ["E"]
        text = {"name": _identifier, "text": _literal}.get(token.kind, str)(token.value)
        parts = [*parts[:-1], f"E{text}"] if escaped else [*parts, text]
    return " ".join(parts)


def _identifier(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
