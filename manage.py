#!/usr/bin/env python
"""Commands of pgbr and of Django."""

import os
import sys

# These neither need a database nor should they start one.
WITHOUT_DATABASE = {
    "embedded_db",
    "doctor",
    "pgtools",
    "help",
    "makemigrations",
    "check",
    "--help",
    "--version",
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgbr.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
    except ModuleNotFoundError:
        sys.stderr.write("This Python lacks pgbr's packages: use .venv/bin/python (`make setup` makes it).\n")
        sys.exit(2)

    from pgbr.accounts import LocalServerError

    try:
        run()
    except (ImproperlyConfigured, LocalServerError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def run() -> None:
    from pgbr import embedded, env

    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if env.database_url() is None and command not in WITHOUT_DATABASE and not command.startswith("-"):
        embedded.ensure(env.home())

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
