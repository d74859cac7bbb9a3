"""Who may see and touch what: any active account, its own rows; a superuser, all."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from jobs.services import visible_to

Row = TypeVar("Row", bound=Model)
# How Django's own filters compare. Others, such as regex, let a query do work of its own.
COMPARED = frozenset({"", "exact", "id__exact", "isnull", "gte", "gt", "lte", "lt"})

if TYPE_CHECKING:

    class TypedAdmin(admin.ModelAdmin[Row]): ...

else:

    class TypedAdmin(admin.ModelAdmin):
        """Django's own class takes no type parameter at run time."""

        __class_getitem__ = classmethod(lambda cls, _: cls)


def account(request: HttpRequest) -> User:
    """The person behind a request that has passed the admin's login."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101  the site lets nobody else in
    return user


def may_enter(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_staff", False))


def _parameter(entry: Any) -> str:
    """What an entry of `list_filter` reads from the query: a field's name, or a filter's own parameter."""
    if isinstance(entry, tuple | list):
        return str(entry[0])
    return entry if isinstance(entry, str) else str(entry.parameter_name)


class OwnerFilter(admin.RelatedOnlyFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "owner"


class SteadyList(ChangeList):
    """Django counts first and reads later; a row that a worker adds in between would come without the bar
    of actions, and the page's script would stumble over it."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        self.show_admin_actions = bool(self.result_list)


class OwnedAdmin(TypedAdmin[Row]):
    """Rows of others do not exist here: lists leave them out, their pages answer as for a missing object."""

    list_per_page = 50
    list_select_related: ClassVar[bool | list[str]] = ["user"]
    owner_field = "user"
    page_title = ""  # of the list; empty: the model's plural

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        return self.visible(request, super().get_queryset(request))

    def visible(self, request: HttpRequest, rows: QuerySet[Row]) -> QuerySet[Row]:
        return visible_to(account(request), rows)

    def find(self, request: HttpRequest, object_id: str | UUID) -> Row:
        """The row that this request may see, else 404."""
        found = self.get_object(request, str(object_id))
        if found is None:
            raise Http404(f"There is no {self.opts.verbose_name} {object_id}.")
        return found

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SteadyList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        title = {"title": self.page_title or str(self.opts.verbose_name_plural).capitalize()}
        return super().changelist_view(request, title | (extra_context or {}))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return may_enter(request) and self.is_visible(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return may_enter(request) and self.is_visible(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return may_enter(request) and self.is_visible(request, obj)

    def is_visible(self, request: HttpRequest, obj: Row | None) -> bool:
        user = account(request)
        return obj is None or user.is_superuser or getattr(obj, "user_id", None) == user.pk

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Lists are narrowed by their filters alone: what a page hides must not be found letter by letter."""
        name, _, how = lookup.partition("__")
        offered = {_parameter(entry) for entry in self.get_list_filter(request)}
        if name not in offered or how not in COMPARED or "\0" in str(value):
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """A superuser sees whose each row is, once there is anybody else."""
        columns: list[Any] = list(super().get_list_display(request))
        if self._shows_owner(request) and User.objects.exclude(pk=account(request).pk).exists():
            columns.insert(-1 if columns[-1] == "buttons" else len(columns), "owner")
        return columns

    @admin.display(description="owner", ordering="user")
    def owner(self, row: Any) -> str:
        return row.user.get_username() if row.user_id else "the instance"

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        filters: list[Any] = list(super().get_list_filter(request))
        return [*filters, (self.owner_field, OwnerFilter)] if self._shows_owner(request) else filters

    def _shows_owner(self, request: HttpRequest) -> bool:
        return bool(self.owner_field) and account(request).is_superuser


class ReadOnlyAdmin(OwnedAdmin[Row]):
    """To look at; what can be done is offered as an action of its own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False
