"""Whose job, whose database: nobody touches another's, and what is refused changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User

from jobs import artifacts, databases, services, trash
from jobs.models import ActivityEvent, BackupJob, Database, QueuedJob, Storage, TimelineLine
from jobs.pgtools.errors import InvalidConninfo, InvalidFlags
from jobs.rerunning import rerun_job
from jobs.secrets import seal
from jobs.services import NotFound, ServiceError
from jobs.stores import default_storage
from jobs.targets import conninfo_for

from .conftest import URL, FinishedBackup, keys

pytestmark = pytest.mark.django_db


def everything() -> tuple[object, ...]:
    jobs, backups = (list(model.objects.order_by("id").values()) for model in (QueuedJob, BackupJob))
    return jobs, backups, [model.objects.count() for model in (TimelineLine, ActivityEvent, Database)]


@dataclass(frozen=True)
class Owned:
    """What belongs to the user "ada"."""

    database: Database
    backup: BackupJob
    job: QueuedJob


ATTEMPTS: dict[str, Callable[[User, Owned], object]] = {
    "enqueue": lambda by, of: services.enqueue_backup(of.database, {}, by=by),
    "cancel": lambda by, of: services.cancel_job(of.job.id, by=by),
    "rerun": lambda by, of: rerun_job(of.backup.id, by=by),
    "find": lambda by, of: services.find_database(by, of.database.name),
    "trash": lambda by, of: trash.put(of.backup, by=by),
    "delete": lambda by, of: trash.for_good(of.backup, by=by),
    "pin": lambda by, of: trash.pin(of.backup, True, by=by),
}


@pytest.fixture
def owned(database: Database, finished_backup: FinishedBackup) -> Owned:
    job_id = services.enqueue_backup(database, {}, by=database.user)
    return Owned(database, finished_backup(), QueuedJob.objects.get(id=job_id))


@pytest.mark.parametrize("name", ATTEMPTS)
def test_anothers_is_not_found_and_stays_as_it_is(name: str, owned: Owned, other_user: User) -> None:
    before, objects = everything(), keys(default_storage())
    with pytest.raises(NotFound):
        ATTEMPTS[name](other_user, owned)
    assert (everything(), keys(default_storage())) == (before, objects)


def test_anothers_job_is_refused_in_the_words_for_one_that_does_not_exist(
    owned: Owned, other_user: User
) -> None:
    messages = []
    for job_id in (owned.job.id, uuid.UUID(int=1)):
        with pytest.raises(NotFound) as refused:
            services.cancel_job(job_id, by=other_user)
        messages.append(str(refused.value).replace(str(job_id), "it"))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("who", ["user", "superuser"])
@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_owner_and_a_superuser_may(
    name: str, who: str, owned: Owned, request: pytest.FixtureRequest
) -> None:
    before = everything()
    ATTEMPTS[name](request.getfixturevalue(who), owned)
    assert (everything() == before) == (name == "find")


def test_a_job_belongs_to_the_databases_owner_whoever_asked_for_it(
    database: Database, superuser: User, finished_backup: FinishedBackup
) -> None:
    for job_id in (
        services.enqueue_backup(database, {}, by=superuser),
        rerun_job(finished_backup().id, by=superuser),
    ):
        assert QueuedJob.objects.get(id=job_id).user == database.user
    asked = ActivityEvent.objects.filter(action="backup").values_list("username", flat=True)
    assert set(asked) == {superuser.get_username()}


def test_anothers_storage_is_not_found(database: Database, other_user: User, superuser: User) -> None:
    foreign = Storage.objects.create(user=other_user, name="eve's", kind="folder", folder="/tmp/eve")
    for by in (database.user, superuser):
        with pytest.raises(NotFound, match="eve's"):
            services.enqueue_backup(database, {}, by=by, storage=foreign)
    with pytest.raises(NotFound):
        artifacts.probe_storage(foreign, by=database.user)
    assert QueuedJob.objects.count() == 0


def test_names_are_unique_per_user_only(database: Database, other_user: User, superuser: User) -> None:
    with pytest.raises(ServiceError, match="'shop' is registered already"):
        databases.register(database.user, "shop", URL, by=database.user)
    theirs = databases.register(other_user, "shop", URL, by=other_user)
    assert services.find_database(other_user, "shop") == theirs
    assert services.find_database(database.user, "shop") == database
    with pytest.raises(NotFound):  # whose?
        services.find_database(superuser, "shop")
    own = databases.register(superuser, "shop", URL, by=superuser)
    assert services.find_database(superuser, "shop") == own


def test_an_unknown_name_is_told_with_those_that_are_known(database: Database, other_user: User) -> None:
    with pytest.raises(NotFound, match=r"No database is called 'shpo'\. Registered: shop\."):
        services.find_database(database.user, "shpo")
    with pytest.raises(NotFound, match="Registered: none yet"):
        services.find_database(other_user, "shop")


def test_nobody_registers_for_another_or_lends_the_workers_identity(user: User, superuser: User) -> None:
    with pytest.raises(ServiceError, match="Only a superuser"):
        databases.register(superuser, "mine", "postgresql:///postgres?host=/tmp&user=postgres", by=user)
    with pytest.raises(InvalidConninfo, match="unix socket"):
        databases.register(user, "mine", "postgresql:///postgres?host=/tmp&user=postgres", by=superuser)
    databases.register(superuser, "mine", "postgresql:///postgres?host=/tmp&user=postgres", by=superuser)
    assert Database.objects.get().user == superuser


def test_bad_flags_enqueue_nothing(database: Database) -> None:
    with pytest.raises(InvalidFlags, match="dumping in parallel needs format directory"):
        services.enqueue_backup(database, {"jobs": 3}, by=database.user)
    assert everything() == ([], [], [0, 0, 1])


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "tab\there", "line\nbreak"])
def test_a_name_that_is_none_is_refused(user: User, name: str) -> None:
    with pytest.raises(ServiceError, match="1 to 100 printable"):
        databases.register(user, name, URL, by=user)


def test_a_registered_url_is_sealed(user: User) -> None:
    database = databases.register(user, "sealed", f" {URL} ", by=user)
    database.refresh_from_db()
    assert "secret" not in str(Database.objects.filter(id=database.id).values())
    assert database.sealed_url != seal(URL)  # no two tokens are alike
    assert conninfo_for(database).password == "secret"
