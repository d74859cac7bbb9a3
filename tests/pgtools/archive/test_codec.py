"""Compressed artifacts come out whole, in small pieces, or not at all."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from collections.abc import Iterator

import pytest
import zstandard

from jobs.pgtools.archive.codec import PIECE, codec_of, decompressed
from jobs.pgtools.errors import DamagedArchive

TEXT = b"COPY public.orders FROM stdin;\n" * 90_000
NOISE = random.Random(3).randbytes(300_000)  # noqa: S311
SKIPPED = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"


def zstd(data: bytes, **parameters: int) -> bytes:
    settings = zstandard.ZstdCompressionParameters.from_level(3, **parameters)
    return zstandard.ZstdCompressor(compression_params=settings).compress(data)


def without_size(data: bytes) -> bytes:
    """As a stream is compressed: the frame does not say how much is in it."""
    packer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compressobj()
    return packer.compress(data) + packer.flush()


def cut(data: bytes, size: int = 4000) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def whole(data: bytes, codec: str, size: int = 4000) -> bytes:
    return b"".join(decompressed(cut(data, size), codec))


@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["nothing", "byte", "text", "noise"])
@pytest.mark.parametrize("size", [999, 1 << 22])
def test_what_was_compressed_comes_out(data: bytes, size: int) -> None:
    for pack, codec in ((gzip.compress, "gzip"), (zstd, "zstd"), (without_size, "zstd")):
        packed = pack(data)
        assert codec_of(packed) == codec
        assert whole(packed, codec, size) == data
    assert whole(data, "none", size) == data


def test_members_and_frames_follow_each_other() -> None:
    assert whole(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(1000), "gzip") == b"one two"
    frames = (
        SKIPPED + zstd(b"one ") + SKIPPED + without_size(b"two ") + zstd(b"") + zstd(b"three", window_log=20)
    )
    for size in (1, 7, 4000):
        assert whole(frames, "zstd", size) == b"one two three"
    assert codec_of(frames) == "zstd"


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("data", [TEXT, NOISE, b"short"], ids=["text", "noise", "short"])
def test_what_breaks_off_is_refused_wherever(data: bytes, codec: str) -> None:
    packs = [gzip.compress] if codec == "gzip" else [zstd, without_size]
    for pack in packs:
        packed = pack(data)
        for length in {3, 5, 9, 15, len(packed) // 2, len(packed) - 5, len(packed) - 1}:
            if 0 < length < len(packed):
                with pytest.raises(DamagedArchive):
                    whole(packed[:length], codec)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_damage_is_noticed(codec: str) -> None:
    packed = bytearray(gzip.compress(NOISE) if codec == "gzip" else without_size(NOISE))
    packed[len(packed) // 2] ^= 4
    with pytest.raises(DamagedArchive, match="damaged"):
        whole(bytes(packed), codec)
    with pytest.raises(DamagedArchive):
        whole((gzip.compress(TEXT) if codec == "gzip" else zstd(TEXT)) + b"rubbish", codec)


def test_a_bomb_is_handed_out_in_pieces() -> None:
    empty = zstd(bytes(1 << 27))
    assert len(empty) < 1 << 15
    for packed, codec in ((empty, "zstd"), (gzip.compress(bytes(1 << 24)), "gzip")):
        tracemalloc.start()
        pieces = decompressed([packed], codec)
        assert max(len(next(pieces)) for _ in range(12)) <= PIECE
        assert tracemalloc.get_traced_memory()[1] < 8 * PIECE
        tracemalloc.stop()


def test_a_window_of_gigabytes_is_not_opened() -> None:
    # Magic, then a frame without size whose window is 2 GiB: RFC 8878, 3.1.1.1.2.
    frame = b"\x28\xb5\x2f\xfd" + bytes([0, 21 << 3]) + bytes([1, 0, 0])
    with pytest.raises(DamagedArchive, match="128 MiB"):
        whole(frame, "zstd")


@pytest.mark.parametrize("head", [b"", b"\x1f", b"PGDMP", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18"])
def test_other_beginnings_are_no_codec_of_ours(head: bytes) -> None:
    assert codec_of(head) == "none"
