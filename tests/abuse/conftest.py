"""The same accounts and belongings as in the admin's tests."""

from tests.admin.conftest import ada, belongings_of, eve, root

__all__ = ["ada", "belongings_of", "eve", "root"]
