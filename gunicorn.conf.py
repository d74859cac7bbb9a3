"""Threads, because answers wait on the network: each open event stream holds one."""

from typing import Any

bind = "127.0.0.1:8000"
worker_class = "gthread"
workers = 1
threads = 16
timeout = 60
graceful_timeout = 20
control_socket_disable = True  # nobody here would use it
wsgi_app = "pgbr.wsgi:application"


def on_starting(_: Any) -> None:
    from pgbr import embedded, env

    if env.database_url() is None:
        embedded.ensure(env.home())


def post_worker_init(_: Any) -> None:
    from django.conf import settings

    from jobs.storage import s3_client

    if settings.ENVIRONMENT_STORAGE is not None:
        s3_client.warm_up()  # uploads go there
