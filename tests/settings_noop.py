"""The settings with processors that do nothing, for tests of the queue and the worker."""

from pgbr.settings import *  # noqa: F403

PROCESSORS = dict.fromkeys(["backup", "restore", "migration"], "tests.processors_for_tests.Noop")
