"""The formats of `jobs.admin.formats` for templates."""

from django import template

from jobs.admin import formats

register = template.Library()

for name in ("size", "duration", "when", "status", "exact", "age", "level", "lock"):
    register.filter(name, getattr(formats, name))
register.simple_tag(formats.between, name="between")
register.simple_tag(formats.status, name="badge")
