"""What goes wrong with a schedule's time, as errors a user can act on."""

from __future__ import annotations


class CronError(ValueError):
    """An expression or a zone that cannot be used. The message: which field, what is wrong, what would do."""
