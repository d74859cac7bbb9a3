"""What may be uploaded: names, sizes, and the ways in which an upload is refused."""

from __future__ import annotations

from django.conf import settings

from jobs.services import ServiceError
from jobs.units import in_bytes

NAME_MAX = 255


class UploadRefused(ServiceError):
    """The file or the way it came is at fault; nothing of it is kept."""


class TooLarge(UploadRefused):
    """More than UPLOAD_MAX_BYTES."""


class CutOff(UploadRefused):
    """The body ended before it was complete."""


class NoDump(UploadRefused):
    """Nothing that can be restored from; says what it looks like."""


class InUse(ServiceError):
    """A restore that waits or runs reads from it."""


def clean_name(given: str) -> str:
    """The name of a file as it is shown, without the folders before it. Raises `UploadRefused`."""
    name = given.replace("\\", "/").rsplit("/", 1)[-1].strip()
    if name in ("", ".", "..") or len(name) > NAME_MAX or not name.isprintable():
        raise UploadRefused(f"An upload needs the name of its file: 1 to {NAME_MAX} printable characters.")
    return name


def refuse_large(size: int) -> None:
    """Raises `TooLarge` for more bytes than UPLOAD_MAX_BYTES."""
    most = settings.UPLOAD_MAX_BYTES
    if size > most:
        raise TooLarge(
            f"The file is larger than {in_bytes(most)}, the most that may be uploaded here "
            "(UPLOAD_MAX_BYTES sets it)."
        )


def refuse_empty(size: int) -> None:
    """Raises `UploadRefused` for no bytes at all."""
    if size == 0:
        raise UploadRefused("The file is empty: there is nothing to restore in it.")
