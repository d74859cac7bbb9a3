"""A file is what its bytes are; what is no dump is refused saying what it looks like."""

from __future__ import annotations

import time

import pytest

from jobs.pgtools.archive import plain
from jobs.pgtools.archive.grants import grantees
from jobs.pgtools.archive.sniff import sniff
from jobs.pgtools.errors import UnknownContent
from tests.pgtools.archive import forge


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"", "empty"),
        (b" \n\t", "blank"),
        (b"PK\x03\x04....", "zip"),
        (b"\xfd7zXZ\x00..", "xz"),
        (b"BZh91AY", "bzip2"),
        (b"\x04\x22\x4d\x18..", "lz4"),
        (b"\x1f\x8b\x08..", "compressed twice"),
        (b"SQLite format 3\x00....", "SQLite"),
        (b"\x89PNG\r\n\x1a\n..", "PNG"),
        (b"\xff\xd8\xff\xe0..", "JPEG"),
        (b"%PDF-1.7", "PDF"),
        ("\ufeffSELECT 1;".encode("utf-16-le"), "UTF-16"),
        (b"-- MySQL dump 10.13  Distrib 8.0", "MySQL"),
        (b"/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump", "MySQL or MariaDB"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"\n<html>", "web page"),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey', "error message of a store"),
        (b'{"id": 1}', "JSON"),
        (b"[1, 2]", "JSON"),
        (b"id,name\n1,Ada\n", "does not begin as SQL"),
        (b"Dear all, please find", "does not begin as SQL"),
        (b"\x00\x01\x02\x03" * 300, "binary data"),
        (b"-----BEGIN PGP MESSAGE-----", "encrypted"),
        (b"--\n-- PostgreSQL database cluster dump\n--\n\nSET x = 1;", "pg_dumpall"),
    ],
    ids=range(24),
)
def test_what_is_no_dump_is_named(head: bytes, words: str) -> None:
    with pytest.raises(UnknownContent, match=words):
        sniff(head)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PGDMP\x01\x0e", "custom"),
        (forge.tar([("a.txt", b"hello")]), "tar"),
        (b"--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n", "plain"),
        (b"\xef\xbb\xbf-- PostgreSQL database dump\r\n", "plain"),
        (b"/* mine\n ** */\n  create table t (id int);", "plain"),
        (b"SET client_encoding = 'UTF8';", "plain"),
        (b"\\connect shop\n", "plain"),
        (b"-- only a comment", "plain"),
        (b"INSERT INTO t VALUES ('\xe4');", "plain"),
    ],
    ids=range(9),
)
def test_what_can_be_restored_is_told_apart(head: bytes, kind: str) -> None:
    assert sniff(head) == kind


def test_the_head_of_plain_sql_tells_versions() -> None:
    head = b"""--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 16.4 (Debian 16.4-1)\r
-- Dumped by pg_dump version 17.6\n"""
    assert plain.versions(head) == ("17.6", "16.4 (Debian 16.4-1)")
    assert plain.versions(b"SELECT 1;") == ("", "")


@pytest.mark.parametrize(
    ("kind", "definition", "roles"),
    [
        ("ACL", 'GRANT SELECT ON TABLE public."TO x" TO "sample reader", ada;', {"sample reader", "ada"}),
        ("ACL", "REVOKE ALL ON SCHEMA a FROM PUBLIC;\nGRANT ALL ON SCHEMA a TO server;\n", {"server"}),
        ("ACL", 'GRANT UPDATE(a) ON TABLE t TO "a""b" WITH GRANT OPTION;', {'a"b'}),
        (
            "ACL",
            'SET SESSION AUTHORIZATION "x y";GRANT ALL ON t TO z;RESET SESSION AUTHORIZATION;',
            {"x y", "z"},
        ),
        (
            "DEFAULT ACL",
            "ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA s GRANT SELECT ON TABLES TO b;",
            {"a", "b"},
        ),
        ("POLICY", "CREATE POLICY p ON s.t AS RESTRICTIVE TO r, \"q'\" USING ((a = 'TO z'));", {"r", "q'"}),
        ("POLICY", "CREATE POLICY p ON s.t USING (true);", set()),
        ("USER MAPPING", "CREATE USER MAPPING FOR server SERVER s OPTIONS (\"user\" 'x');", {"server"}),
        ("USER MAPPING", "CREATE USER MAPPING FOR PUBLIC SERVER s;", set()),
        ("TABLE", "GRANT x TO y;", set()),
    ],
    ids=range(10),
)
def test_roles_are_found_where_statements_name_them(kind: str, definition: str, roles: set[str]) -> None:
    assert grantees(kind, definition) == roles


@pytest.mark.parametrize(
    "text", ['"' * 99_999, "'" * 99_999, '"a' * 50_000, "(" * 99_999, "-" * 99_999, "a" * 99_999]
)
def test_hostile_texts_take_no_longer_than_their_length(text: str) -> None:
    began = time.process_time()
    grantees("ACL", f"GRANT {text} TO x;")
    for opening in ("", "/*", "--", "/*" * 40_000):
        plain.looks_like_sql(f"{opening}{text}".encode())
    assert time.process_time() - began < 1
