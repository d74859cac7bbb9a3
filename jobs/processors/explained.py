"""What stores and tools raise, as the failure of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from jobs import scratch
from jobs.pgtools.archive import patience
from jobs.pgtools.errors import PgToolsError
from jobs.pgtools.hints import login_message
from jobs.pgtools.mask import mask
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.storage.base import StoreError


@contextmanager
def explained(control: Control, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Trouble becomes `JobFailed`; unless the job was stopped, which explains it. To stop it also ends a look
    into an archive."""
    try:
        with patience.until(control.stopped):
            yield
    except (PgToolsError, StoreError) as error:
        control.check()
        raise JobFailed(str(error)) from error
    except psycopg.Error as error:
        control.check()
        raise JobFailed(f"The server gave an error: {login_message(mask(str(error), secrets))}") from error
    except OSError as error:
        control.check()
        raise JobFailed(scratch.trouble(error)) from error
