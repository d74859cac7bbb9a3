"""The settings with upkeep that looks every second, and none of the pauses for which a test cannot wait."""

from pgbr.settings import *  # noqa: F403
from pgbr.settings import INSTALLED_APPS, UPKEEP_DUTIES

UPKEEP_DUTIES = [(path, pace, min(seconds, 1.0)) for path, pace, seconds in UPKEEP_DUTIES]
INSTALLED_APPS = [*INSTALLED_APPS, "tests.hasty.Hasty"]
