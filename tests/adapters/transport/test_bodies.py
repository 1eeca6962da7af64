"""Bodies of replies: decompressed chunk by chunk, and never beyond their limit."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from agenteval.adapters.transport.bodies import (
    MAX_BODY,
    MAX_ERROR_BODY,
    Body,
    TooLargeError,
    UnreadableBodyError,
    encoding_of,
    read_body,
    read_error_body,
)

TEXT = b"The order 4711 was shipped. " * 20


GZIP_HEADER, ZLIB_HEADER = gzip.compress(b"", mtime=0)[:10], zlib.compress(b"")[:2]
NO_BLOCK = b"\x07"
"""A type of block that does not exist."""


def bare(data: bytes, level: int = -1) -> bytes:
    packer = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def whole(encoding: str | None, packed: bytes, step: int = 0, most: int = MAX_BODY) -> bytes:
    body = Body(encoding, most)
    step = step or len(packed) or 1
    return b"".join(body.feed(packed[at : at + step]) for at in range(0, len(packed), step))


PACKED: dict[str, tuple[str | None, bytes]] = {
    "no encoding": (None, TEXT),
    "empty encoding": ("", TEXT),
    "identity": ("identity", TEXT),
    "gzip": ("gzip", gzip.compress(TEXT)),
    "x-gzip": ("x-gzip", gzip.compress(TEXT)),
    "upper case": (" GZIP ", gzip.compress(TEXT)),
    "deflate": ("deflate", zlib.compress(TEXT)),
    "deflate without a header": ("deflate", bare(TEXT)),
    "two, the last one outermost": ("deflate, gzip", gzip.compress(bare(TEXT))),
    "three": ("gzip,gzip, identity, gzip", gzip.compress(gzip.compress(gzip.compress(TEXT)))),
    "deflate, stored": ("deflate", bare(TEXT, 0)),
    "two members": ("gzip", gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])),
    "what is no member": ("gzip", gzip.compress(TEXT) + b"\0\0\0 and more"),
}


@pytest.mark.parametrize("step", [0, 1, 2, 7, 20])
@pytest.mark.parametrize(("encoding", "packed"), PACKED.values(), ids=PACKED)
def test_a_body_in_chunks_of_any_size(encoding: str | None, packed: bytes, step: int) -> None:
    assert whole(encoding, packed, step) == TEXT


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate"])
def test_an_empty_body(encoding: str | None) -> None:
    assert Body(encoding).feed(b"") == b""


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip,gzip,gzip,gzip", "*"])
def test_an_encoding_that_was_not_requested(encoding: str) -> None:
    with pytest.raises(UnreadableBodyError) as error:
        Body(encoding)
    assert encoding in str(error.value)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", b"not packed at all"),
        ("gzip", bare(TEXT)),
        ("deflate", b"\xff\xff\xff\xff"),
        ("gzip", GZIP_HEADER + NO_BLOCK),
        ("deflate", ZLIB_HEADER + 8 * NO_BLOCK),
    ],
)
def test_invalid_data(encoding: str, packed: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        whole(encoding, packed)


def test_only_the_first_chunk_may_have_no_header() -> None:
    body = Body("deflate")
    body.feed(ZLIB_HEADER)
    with pytest.raises(UnreadableBodyError):
        body.feed(NO_BLOCK + bare(TEXT))


@pytest.mark.parametrize("step", [0, 1, 7, 20])
@pytest.mark.parametrize(("encoding", "packed"), PACKED.values(), ids=PACKED)
def test_a_body_may_have_its_limit_and_no_byte_more(encoding: str | None, packed: bytes, step: int) -> None:
    assert whole(encoding, packed, step, len(TEXT)) == TEXT
    with pytest.raises(TooLargeError):
        whole(encoding, packed, step, len(TEXT) - 1)


def test_a_bomb_is_not_unpacked() -> None:
    inner = gzip.compress(bytes(2**24))
    with pytest.raises(TooLargeError):
        whole("gzip", inner, most=1000)
    with pytest.raises(TooLargeError):
        whole("gzip, gzip", gzip.compress(inner), most=1000)
    empty = gzip.compress(gzip.compress(b"") * 1000)
    with pytest.raises(TooLargeError):
        whole("gzip, gzip", empty, most=1000)
    assert whole(None, bytes(5), most=5) == bytes(5)


def test_a_reply_may_have_ten_mebibytes() -> None:
    assert MAX_BODY == 10 * 2**20
    packed = gzip.compress(bytes(MAX_BODY), 1)
    assert len(whole("gzip", packed)) == MAX_BODY
    with pytest.raises(TooLargeError):
        whole("gzip", packed + gzip.compress(b"a"))


async def pieces_of(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def read(*pieces: bytes, encoding: str | None = None) -> bytes:
    return anyio.run(read_body, pieces_of(pieces), encoding)


def read_error(*pieces: bytes, encoding: str | None = None, most: int = MAX_ERROR_BODY) -> bytes:
    return anyio.run(read_error_body, pieces_of(pieces), encoding, most)


def test_a_body_is_read_to_its_end() -> None:
    packed = gzip.compress(TEXT)
    assert read(packed[:5], packed[5:], encoding="gzip") == TEXT
    assert read() == b""
    assert read(b"a", b"", b"b") == b"ab"
    with pytest.raises(UnreadableBodyError):
        read(b"oops", encoding="gzip")
    with pytest.raises(UnreadableBodyError):
        read(b"a", encoding="br")
    with pytest.raises(TooLargeError):
        read(bytes(MAX_BODY), b"a")


def test_of_an_errors_body_there_is_what_can_be_read() -> None:
    assert read_error(b"ab", b"cd") == b"abcd"
    assert read_error(b"a", encoding="br") == b""
    assert read_error(gzip.compress(TEXT), encoding="gzip") == TEXT
    assert read_error(b"oops", encoding="gzip") == b""
    assert read_error(gzip.compress(TEXT), GZIP_HEADER, NO_BLOCK, encoding="gzip") == TEXT
    assert read_error(b"ab", bytes(MAX_BODY)) == b"ab"


def test_an_errors_body_is_truncated() -> None:
    assert MAX_ERROR_BODY == 2**20
    assert read_error(b"abc", b"def", most=6) == b"abcdef"
    assert read_error(b"abc", b"defg", most=6) == b"abcdef"
    assert read_error(bytes(2**20), b"ab") == bytes(2**20)


def test_an_errors_body_is_read_no_further_than_needed() -> None:
    seen: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        for at in range(100):
            seen.append(at)
            yield b"12"

    assert anyio.run(read_error_body, endless(), None, 4) == b"1212"
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("headers", "encoding"),
    [
        ([], None),
        ([(b"content-type", b"gzip")], None),
        ([(b"Content-Encoding", b"gzip")], "gzip"),
        ([(b"content-encoding", b"deflate"), (b"CONTENT-ENCODING", b"gzip")], "deflate,gzip"),
        ([(b"content-encoding", b"")], None),
        ([(b"content-encoding", b"\xe9")], "é"),
    ],
)
def test_the_encoding_in_the_headers(headers: list[tuple[bytes, bytes]], encoding: str | None) -> None:
    assert encoding_of(headers) == encoding
