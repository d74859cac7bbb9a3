"""Credentials, buckets and permissions: what is refused, and whether the message helps."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from jobs.storage import s3_client
from jobs.storage.base import ObjectMissing, StoreError
from jobs.storage.s3 import S3Store
from tests.s3server import NO_CREATE, NO_DELETE, PUT_ONLY, Identity, S3Server
from tests.storage.stores import PART, content, fetch, s3_store, save

KEY = "db/one.dump"


@pytest.mark.parametrize(
    ("who", "advice"),
    [
        (Identity("pgbr-full", "not-the-secret"), "secret access key is wrong"),
        (Identity("pgbr-nobody", "not-the-secret"), "access key id is unknown"),
    ],
)
def test_wrong_credentials_fail_at_once_with_advice(
    weed: S3Server, bucket: str, who: Identity, advice: str
) -> None:
    store = s3_store(weed, bucket, who=who)
    uses: list[Callable[[], None]] = [
        store.prepare,
        lambda: save(store, KEY, b"x"),
        lambda: save(store, KEY, content(PART + 1)),
    ]
    for use in uses:
        with pytest.raises(StoreError, match=advice) as caught:
            use()
        assert not caught.value.transient
        assert bucket in str(caught.value)
        assert "the bucket" in str(caught.value)
        assert who.secret_key not in str(caught.value)
    assert store.probe().put is not None
    assert weed.keys(bucket) == []


def test_a_missing_bucket_is_created(weed: S3Server) -> None:
    store = s3_store(weed, "test-made-by-prepare")
    store.prepare()
    store.prepare()
    save(store, KEY, b"x")
    assert weed.keys("test-made-by-prepare") == [KEY]


def test_a_missing_bucket_that_may_not_be_created_is_told(weed: S3Server) -> None:
    store = s3_store(weed, "test-not-there", who=NO_CREATE)
    with pytest.raises(
        StoreError, match=r"test-not-there: the bucket does not exist and .* may not create it"
    ):
        store.prepare()
    for size in (10, PART + 1):
        with pytest.raises(StoreError, match=r"NoSuchBucket.*create it, or correct"):
            save(store, KEY, content(size))


def test_a_bucket_that_exists_needs_no_right_to_create_it(weed: S3Server, bucket: str) -> None:
    for who in (NO_CREATE, PUT_ONLY):
        s3_store(weed, bucket, who=who).prepare()


def test_probe_reports_a_key_that_may_not_delete_and_calls_it_usable(weed: S3Server, bucket: str) -> None:
    store = s3_store(weed, bucket, who=NO_DELETE)
    for _ in range(2):
        probe = store.probe("team")
        assert (probe.put, probe.get, probe.list) == (None, None, None)
        assert probe.delete is not None
        assert "AccessDenied" in probe.delete
        assert probe.usable
    assert weed.keys(bucket) == ["team/.pgbr-probe"]


def test_probe_reports_each_permission_by_itself(weed: S3Server, bucket: str) -> None:
    probe = s3_store(weed, bucket, who=PUT_ONLY).probe()
    assert probe.put is None
    assert all("AccessDenied" in str(verdict) for verdict in (probe.get, probe.list, probe.delete))
    assert not probe.usable


def test_a_key_that_may_not_delete_can_still_abort_its_upload(weed: S3Server, bucket: str) -> None:
    with s3_store(weed, bucket, who=NO_DELETE).writer(KEY) as writer:
        writer.write(content(PART + 1))
        assert writer.abort() is True
    assert weed.open_uploads(bucket) == []


def test_a_missing_object_is_told_from_a_missing_right(weed: S3Server, bucket: str) -> None:
    with pytest.raises(ObjectMissing, match=f"{bucket}, key {KEY}"):
        fetch(s3_store(weed, bucket), KEY)
    with pytest.raises(StoreError, match="lacks this permission") as caught:
        fetch(s3_store(weed, bucket, who=PUT_ONLY), KEY)
    assert not isinstance(caught.value, ObjectMissing)


@pytest.mark.parametrize(
    "endpoint", ["s3.example.com", "ftp://s3.example.com", "https://user:secret@s3.example.com", "https://"]
)
def test_an_endpoint_that_cannot_be_used_is_refused_without_repeating_it(
    weed: S3Server, endpoint: str
) -> None:
    with pytest.raises(StoreError, match="endpoint must") as caught:
        s3_store(weed, "bucket", endpoint=endpoint)
    assert "secret" not in str(caught.value)


def test_a_bucket_name_that_is_none_is_refused(weed: S3Server) -> None:
    with pytest.raises(StoreError, match="bucket name"):
        s3_store(weed, "not a bucket").prepare()


def test_https_to_a_server_without_tls_fails_at_once(weed: S3Server, bucket: str) -> None:
    store = s3_store(weed, bucket, endpoint=weed.endpoint.replace("http:", "https:"))
    with pytest.raises(StoreError, match="TLS failed") as caught:
        store.prepare()
    assert not caught.value.transient


def test_the_accounts_own_settings_change_nothing(
    weed: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(s3_client, "_session", None)
    save(s3_store(weed, bucket, region="eu-west-1"), KEY, b"x")
    aws = s3_client.client(s3_client.Parameters("", "eu-west-1", "key", "secret", False))
    assert aws.meta.endpoint_url == "https://s3.eu-west-1.amazonaws.com"
    monkeypatch.setattr(s3_client, "_clients", {})


def test_clients_are_shared_by_parameters_and_not_over_a_fork(weed: S3Server, bucket: str) -> None:
    store = s3_store(weed, bucket)
    parameters = store._bucket._parameters
    mine = s3_client.client(parameters)
    save(store, KEY, b"x")
    assert s3_client.client(s3_store(weed, bucket)._bucket._parameters) is mine
    child = os.fork()
    if child == 0:
        forgotten = not s3_client._clients and s3_client.client(parameters) is not mine
        os._exit(0 if forgotten and fetch(store, KEY) == b"x" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fetch(store, KEY) == b"x"


def test_representations_hide_the_secret(weed: S3Server, bucket: str) -> None:
    store: S3Store = s3_store(weed, bucket)
    assert weed.secret_key not in repr(store) + repr(store._bucket._parameters)
