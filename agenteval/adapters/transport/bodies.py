"""Decompress reply bodies piece by piece and count their bytes.

A body that is too large is neither kept nor decompressed further, however little of it was sent."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import httpx2

from agenteval.agentside.targets.reply_limit import MAX_REPLY_BYTES

MAX_BODY = MAX_REPLY_BYTES
"""The most bytes of a reply, decompressed. A longer one is refused as soon as it exceeds them."""
MAX_ERROR_BODY = 2**20
"""The most bytes read of an error reply: it is only quoted, and some quote the whole request."""
ENCODINGS = "gzip, deflate"
"""The encodings that are requested. A reply in any other encoding is not understood."""
_MOST_PACKINGS = 3
_ANY = zlib.MAX_WBITS | 32  # gzip's header or zlib's


class TooLargeError(Exception):
    """Raised when a body has more bytes than allowed."""


class Body:
    """Counts and decompresses a body. ``encoding``: that of the reply's headers."""

    def __init__(self, encoding: str | None, most: int = MAX_BODY) -> None:
        self._left = most
        self._layers = [_Layer(name) for name in reversed(_names(encoding))]

    def feed(self, data: bytes) -> bytes:
        """Decompress a piece of the body.

        Raises ``TooLargeError``, and ``httpx2.DecodingError`` for an unknown compression."""
        for layer in self._layers:
            data = layer.unpacked(data, self._left)
        if len(data) > self._left:
            raise TooLargeError
        self._left -= len(data)
        return data


async def read_body(pieces: AsyncIterator[bytes], encoding: str | None) -> bytes:
    """Read the whole body. Raises as ``Body.feed``."""
    body, found = Body(encoding), bytearray()
    async for piece in pieces:
        found += body.feed(piece)
    return bytes(found)


async def read_error_body(
    pieces: AsyncIterator[bytes], encoding: str | None, most: int = MAX_ERROR_BODY
) -> bytes:
    """Read the body of an error, cut off where it is too large or cannot be read: its status matters more."""
    found = bytearray()
    with suppress(httpx2.HTTPError, TooLargeError):
        body = Body(encoding)
        async for piece in pieces:
            found += body.feed(piece)
            if len(found) > most:
                break
    return bytes(found[:most])


def encoding_of(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the content encoding of raw headers; ``None`` if there is none."""
    named = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-encoding"]
    return ",".join(named) or None


def _names(encoding: str | None) -> list[str]:
    names = [name.strip().lower() for name in (encoding or "").split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > _MOST_PACKINGS or not {"gzip", "x-gzip", "deflate"}.issuperset(names):
        raise httpx2.DecodingError(f"its encoding is {encoding}, but {ENCODINGS} was requested")
    return names


class _Layer:
    """One layer of compression.

    ``deflate`` has a header or, against the standard, none. A gzip file may consist of several members in
    sequence; trailing bytes that are not a member are dropped."""

    def __init__(self, name: str) -> None:
        self._stream = zlib.decompressobj(_ANY)
        self._may_be_bare = name == "deflate"
        self._is_whole = False

    def unpacked(self, data: bytes, left: int) -> bytes:
        """Decompress ``data``. Raises ``TooLargeError`` instead of producing more than ``left`` bytes."""
        return b"".join(self._pieces(data, left))

    def _pieces(self, data: bytes, left: int) -> Iterator[bytes]:
        while data:
            piece = self._unpack(data, left + 1)
            left -= len(piece)
            if left < 0:
                raise TooLargeError
            yield piece
            data = b""
            if self._stream.eof:
                data, self._is_whole = self._stream.unused_data, True
                self._stream = zlib.decompressobj(_ANY)

    def _unpack(self, data: bytes, most: int) -> bytes:
        try:
            piece = self._stream.decompress(data, most)
        except zlib.error as error:
            if self._is_whole:
                self._stream = zlib.decompressobj(_ANY)
                return b""
            if not self._may_be_bare:
                raise httpx2.DecodingError(str(error)) from error
            self._may_be_bare = False
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._unpack(data, most)
        self._may_be_bare = False
        return piece
