"""The admin of schedules. Importing it registers them."""

from schedules.admin import schedules

__all__ = ["schedules"]
