"""Loads a script of SQL into a database without psql, so that no command of psql's can do anything.

`loader.Loader` runs an untrusted script, `reading.statements` cuts a small one. Why this is safe: text is
only ever sent to the server. Where the cuts fall cannot matter to the worker; a wrong one is an SQL error.
"""
