"""The body of a reply, unpacked piece by piece and counted meanwhile: what is too large is neither held nor
unpacked, however little of it was sent."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import httpx2

from agenteval.agentside.targets.reply_limit import MAX_REPLY_BYTES

MAX_BODY = MAX_REPLY_BYTES
"""Bytes of a reply, unpacked. A longer one is refused as soon as that is seen."""
MAX_ERROR_BODY = 2**20
"""Bytes that are read of the reply with an error: it is only quoted, and some quote the whole request."""
ENCODINGS = "gzip, deflate"
"""What is asked for. A server that packs its reply in another way all the same is not understood."""
_MOST_PACKINGS = 3
_ANY = zlib.MAX_WBITS | 32  # gzip's header or zlib's


class TooLargeError(Exception):
    """A body has more bytes than it may have."""


class Body:
    """Counts and unpacks. ``encoding``: that of the reply's headers."""

    def __init__(self, encoding: str | None, most: int = MAX_BODY) -> None:
        self._left = most
        self._layers = [_Layer(name) for name in reversed(_names(encoding))]

    def feed(self, data: bytes) -> bytes:
        """What a piece of the body holds. Raises ``TooLargeError``, and ``httpx2.DecodingError`` for what is
        packed in no known way."""
        for layer in self._layers:
            data = layer.unpacked(data, self._left)
        if len(data) > self._left:
            raise TooLargeError
        self._left -= len(data)
        return data


async def read_body(pieces: AsyncIterator[bytes], encoding: str | None) -> bytes:
    """All of it. Raises as ``Body.feed``."""
    body, found = Body(encoding), bytearray()
    async for piece in pieces:
        found += body.feed(piece)
    return bytes(found)


async def read_error_body(
    pieces: AsyncIterator[bytes], encoding: str | None, most: int = MAX_ERROR_BODY
) -> bytes:
    """The body of an error, cut off where it is too large or cannot be read: its status says more."""
    found = bytearray()
    with suppress(httpx2.HTTPError, TooLargeError):
        body = Body(encoding)
        async for piece in pieces:
            found += body.feed(piece)
            if len(found) > most:
                break
    return bytes(found[:most])


def encoding_of(headers: list[tuple[bytes, bytes]]) -> str | None:
    """That of headers as they came."""
    named = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-encoding"]
    return ",".join(named) or None


def _names(encoding: str | None) -> list[str]:
    names = [name.strip().lower() for name in (encoding or "").split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > _MOST_PACKINGS or not {"gzip", "x-gzip", "deflate"}.issuperset(names):
        raise httpx2.DecodingError(f"its encoding is {encoding}, but {ENCODINGS} was requested")
    return names


class _Layer:
    """One packing. ``deflate`` has a header or, against the standard, none. A gzip file may be several, one
    after the other; what follows and is none is left out."""

    def __init__(self, name: str) -> None:
        self._stream = zlib.decompressobj(_ANY)
        self._may_be_bare = name == "deflate"
        self._is_whole = False

    def unpacked(self, data: bytes, left: int) -> bytes:
        """Raises ``TooLargeError`` rather than to unpack more than ``left`` bytes."""
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
