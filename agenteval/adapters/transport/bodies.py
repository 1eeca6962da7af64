"""Decompress response bodies chunk by chunk, and count their bytes.

A body that is too large is neither stored nor decompressed further, even if its compressed size is small
(decompression bomb)."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress

import aiohttp

from agenteval.agentside.targets.reply_limit import MAX_REPLY_BYTES

MAX_BODY = MAX_REPLY_BYTES
"""The maximum size of a reply in bytes after decompression. A larger reply is refused as soon as it exceeds
this size."""
MAX_ERROR_BODY = 2**20
"""The maximum number of bytes read from an error reply. Such a reply is only quoted, and some servers quote
the complete request in it."""
ENCODINGS = "gzip, deflate"
"""The content encodings to request. A reply in any other encoding cannot be read."""
_MOST_PACKINGS = 3
_ANY = zlib.MAX_WBITS | 32  # gzip's header or zlib's
_HEADER = 2
"""The number of bytes that show whether data in ``deflate`` format has a header."""


class TooLargeError(Exception):
    """Raised if a body contains more bytes than allowed."""


class UnreadableBodyError(Exception):
    """Raised if a body cannot be decompressed."""


class Body:
    """Counts and decompresses a response body. ``encoding`` is the value of the reply's ``Content-Encoding``
    header."""

    def __init__(self, encoding: str | None, most: int = MAX_BODY) -> None:
        self._left = most
        names = _names(encoding)
        # The last layer's data is the body; the data of the others is still compressed.
        self._layers = [_Layer(name, most if at == 0 else _packed(most)) for at, name in enumerate(names)]
        self._layers.reverse()

    def feed(self, data: bytes) -> bytes:
        """Decompress a chunk of the body.

        Raise ``TooLargeError`` if the body is too large, and ``UnreadableBodyError`` if the compressed
        data is invalid."""
        for layer in self._layers:
            data = layer.unpacked(data)
        if len(data) > self._left:
            raise TooLargeError
        self._left -= len(data)
        return data


async def read_body(pieces: AsyncIterator[bytes], encoding: str | None) -> bytes:
    """Read the complete body. Raise the same errors as ``Body.feed``."""
    body, found = Body(encoding), bytearray()
    async for piece in pieces:
        found += body.feed(piece)
    return bytes(found)


async def read_error_body(
    pieces: AsyncIterator[bytes], encoding: str | None, most: int = MAX_ERROR_BODY
) -> bytes:
    """Read the body of an error response. A body that is too large or unreadable is truncated, because the
    status is more important."""
    found = bytearray()
    with suppress(aiohttp.ClientError, UnreadableBodyError, TooLargeError):
        body = Body(encoding)
        async for piece in pieces:
            found += body.feed(piece)
            if len(found) > most:
                break
    return bytes(found[:most])


def encoding_of(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return the content encoding in raw headers, or ``None`` if the headers do not specify an encoding."""
    named = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-encoding"]
    return ",".join(named) or None


def _names(encoding: str | None) -> list[str]:
    names = [name.strip().lower() for name in (encoding or "").split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > _MOST_PACKINGS or not {"gzip", "x-gzip", "deflate"}.issuperset(names):
        raise UnreadableBodyError(f"its encoding is {encoding}, but {ENCODINGS} was requested")
    return names


def _packed(most: int) -> int:
    """Return the maximum size of compressed data that contains ``most`` bytes. Headers and a server's small
    blocks can make it larger than its content."""
    return 2 * most + 2**10


class _Layer:
    """One layer of compression, which may produce at most ``most`` bytes.

    Data in ``deflate`` format has a header or, in violation of the standard, has no header. A gzip file may
    consist of several consecutive members; trailing bytes that do not belong to a member are ignored."""

    def __init__(self, name: str, most: int) -> None:
        self._left = most
        self._stream = zlib.decompressobj(_ANY)
        self._may_be_bare = name == "deflate"
        self._head = b""
        self._is_whole = False

    def unpacked(self, data: bytes) -> bytes:
        """Decompress ``data``. Raise ``TooLargeError`` instead of producing more bytes than allowed."""
        return b"".join(self._pieces(data))

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            piece = self._unpack(data, self._left + 1)
            self._left -= len(piece)
            if self._left < 0:
                raise TooLargeError
            yield piece
            data = b""
            if self._stream.eof:
                data, self._is_whole = self._stream.unused_data, True
                self._stream = zlib.decompressobj(_ANY)

    def _unpack(self, data: bytes, most: int) -> bytes:
        if self._may_be_bare:
            data, self._head = self._head + data, b""
            if len(data) < _HEADER:
                self._head = data
                return b""
        try:
            piece = self._stream.decompress(data, most)
        except zlib.error as error:
            if self._is_whole:
                self._stream = zlib.decompressobj(_ANY)
                return b""
            if not self._may_be_bare:
                raise UnreadableBodyError(str(error)) from error
            self._may_be_bare = False
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._unpack(data, most)
        self._may_be_bare = False
        return piece
