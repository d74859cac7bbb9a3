"""psql's patterns of names, as pg_dump reads them (src/fe_utils/string_utils.c, patternToSQLRegex)."""

from __future__ import annotations

SPECIAL = frozenset("|*+?()[]{}.^$\\")


def to_regexes(pattern: str) -> tuple[str, ...]:
    """The dotted parts of a pattern, each as a regular expression of PostgreSQL that matches a whole name.

    Unquoted letters fold to lower case, * and ? match, a dot separates, other characters of regular
    expressions keep their meaning; inside double quotes each character stands for itself.
    """
    parts = [""]
    quoted = False
    index = 0
    while index < len(pattern):
        character = pattern[index]
        following = pattern[index + 1 : index + 2]
        index += 1
        if character == '"':
            if quoted and following == '"':
                parts[-1] += '"'
                index += 1
            else:
                quoted = not quoted
        elif not quoted and character == ".":
            parts.append("")
        else:
            parts[-1] += _quoted(character) if quoted else _unquoted(character, following)
    return tuple(f"^({part})$" for part in parts)


def problem_with(pattern: str, dots: int) -> str:
    """Why pg_dump would not take a pattern that may hold at most `dots` separating dots; "" when it would."""
    if not pattern.strip():
        return "is empty"
    if pattern.count('"') % 2:
        return "has a double quote that is not closed"
    if len(to_regexes(pattern)) > dots + 1:
        return 'has too many dots (a dot that belongs to a name needs double quotes, as in "a.b")'
    return ""


def _quoted(character: str) -> str:
    return f"\\{character}" if character in SPECIAL else character


def _unquoted(character: str, following: str) -> str:
    if character in "*?":
        return ".*" if character == "*" else "."
    if character == "$" or (character == "[" and following == "]"):
        return f"\\{character}"
    return character.lower() if character.isascii() else character
