"""Parses YAML text to plain values, as ``yaml.safe_load`` does, with the location (line number and column) of
every key and item.

The parser's events are processed with an explicit stack instead of recursion, so that no file can exhaust the
interpreter's stack. This also gives control over locations, duplicate keys, and YAML anchors and aliases.
Plain scalars have the types of the YAML 1.2 core schema: ``no`` and ``12:30`` are strings, and ``010`` is
ten."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn, TypeAlias

import yaml

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.files.yaml_scalars import STANDARD_TAGS, canonical_text, parse_scalar, parse_tagged_scalar
from agenteval.files.yaml_syntax import explain_yaml_error

MAX_BYTES = 20_000_000
MAX_DEPTH = 100
MAX_ALIASED = 1_000_000
"""The maximum number of nodes to which the aliases in one file may expand ("billion laughs" protection)."""
MAX_PROBLEMS = 20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MERGE = "tag:yaml.org,2002:merge"

Children: TypeAlias = "dict[str, Mark] | list[Mark] | None"


class Mark:
    """The location (path, line and column) of a key or an item, and the marks of everything below it.

    ``text`` is the original spelling of a number or boolean, if it differs from the usual spelling."""

    __slots__ = ("children", "column", "line", "path", "text")

    def __init__(
        self, path: str, line: int = 0, column: int = 0, children: Children = None, *, text: str | None = None
    ) -> None:
        self.path = path
        self.line = line
        self.column = column
        self.children = children
        self.text = text

    @property
    def place(self) -> Place:
        return Place(self.path, self.line, self.column)

    @property
    def by_key(self) -> dict[str, Mark]:
        """The marks of the keys in a mapping, or an empty mapping for any other value."""
        return self.children if isinstance(self.children, dict) else {}

    @property
    def without_children(self) -> Mark:
        """The same location without any marks below it."""
        return Mark(self.path, self.line, self.column)

    def with_text(self, text: str) -> Mark:
        """Return the same location for a number or boolean with the given spelling."""
        return Mark(self.path, self.line, self.column, text=text)

    def with_children(self, children: Children) -> Mark:
        """Return the same location with the given marks below it."""
        return Mark(self.path, self.line, self.column, children, text=self.text)

    def child(self, part: str | int) -> Mark | None:
        children = self.children
        if isinstance(children, dict):
            return children.get(str(part))
        if isinstance(children, list) and isinstance(part, int) and 0 <= part < len(children):
            return children[part]
        return None

    def pairs(self) -> list[tuple[str, Mark]]:
        """Return the marks of the direct children with their keys, or with their positions, starting at 0."""
        if isinstance(self.children, list):
            return [(str(index), mark) for index, mark in enumerate(self.children)]
        return list((self.children or {}).items())

    def find(self, loc: Iterable[str | int]) -> Mark:
        """Return the mark at ``loc``, or the mark of its nearest parent. Parts of ``loc`` that do not exist
        in the file are skipped."""
        mark = self
        for part in loc:
            mark = mark.child(part) or mark
        return mark


def unlocated_mark(value: Any, path: str, line: int = 0) -> Mark:
    """Return marks for a value that does not come from a file. All of them have the same location."""
    children: Children = None
    if isinstance(value, Mapping):
        children = {str(key): unlocated_mark(item, path, line) for key, item in value.items()}
    elif isinstance(value, list):
        children = [unlocated_mark(item, path, line) for item in value]
    return Mark(path, line, children=children)


class SourceDocument:
    """A parsed file. ``has_original_text`` is true if at least one mark has a ``text``."""

    __slots__ = ("has_original_text", "mark", "value")

    def __init__(self, value: Any, mark: Mark, *, has_original_text: bool = False) -> None:
        self.value = value
        self.mark = mark
        self.has_original_text = has_original_text


def parse_yaml(data: bytes, path: str) -> SourceDocument:
    """Parse a file with a single YAML document. ``path`` is the name of the file in messages.

    Raise ``AuthorError`` with the location of every mistake."""
    text = decode(data, path)
    builder = _Builder(path)
    try:
        for event in _events(text):
            _HANDLERS[type(event)](builder, event)
    except yaml.YAMLError as error:
        problem = _too_deep_before(error, text, path) or explain_yaml_error(error, text, path)
        raise AuthorError(*builder.problems, problem) from None
    except (
        ValueError,
        OverflowError,
    ) as error:  # raised by the pure Python parser for escapes beyond Unicode
        raise AuthorError(*builder.problems, Problem(f"not valid YAML: {error}", "", Place(path))) from None
    return builder.document()


def _events(text: str) -> Iterator[yaml.Event]:
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
    return events


def _too_deep_before(error: yaml.YAMLError, text: str, path: str) -> Problem | None:
    """Find nesting deeper than ``MAX_DEPTH`` before the position at which the parser stopped.

    The parser reads ahead of the events that it reports. It may therefore reject deep nesting because of its
    own limit before it has reported any nesting. Cutting the text at the position where the parser stopped
    makes it report everything that it has read up to there."""
    mark: Any = getattr(error, "problem_mark", None)
    depth = 0
    with suppress(yaml.YAMLError):
        for event in _events(text[: mark and mark.index]):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                return _too_deep(_place_of(event, path))
    return None


def _too_deep(place: Place) -> Problem:
    return Problem(f"nested more than {MAX_DEPTH} levels deep", "reduce the nesting", place)


def _place_of(event: Any, path: str) -> Place:
    return Place(path, event.start_mark.line + 1, event.start_mark.column + 1)


def decode(data: bytes, path: str) -> str:
    """Decode the text of an author's file. Raise ``AuthorError`` with the location if the file is not valid
    text."""
    if len(data) > MAX_BYTES:
        raise AuthorError(
            Problem(f"the file is larger than {MAX_BYTES // 1_000_000} MB", "split it", Place(path))
        )
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise AuthorError(Problem("the file is encoded as UTF-32", "save it as UTF-8", Place(path)))
    is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise AuthorError(_undecodable(data, error, path, is_utf16=is_utf16)) from None
    if bad := _NOT_PRINTABLE.search(text):
        what = f"the control character U+{ord(bad[0]):04X} is not allowed"
        line_start = text.rfind("\n", 0, bad.start()) + 1
        place = Place(path, text.count("\n", 0, bad.start()) + 1, bad.start() - line_start + 1)
        raise AuthorError(Problem(what, "remove it, and check that the file is saved as UTF-8", place))
    return text


def _undecodable(data: bytes, error: UnicodeDecodeError, path: str, *, is_utf16: bool) -> Problem:
    if is_utf16:
        return Problem("the file is not valid UTF-16", "save it as UTF-8", Place(path))
    at = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
    line = data.count(b"\n", 0, at) + 1
    before = data[data.rfind(b"\n", 0, at) + 1 : at]
    place = Place(path, line, len(before.decode("utf-8", "replace")) + 1)
    return Problem(f"byte 0x{data[at]:02X} is not valid UTF-8", "save the file as UTF-8", place)


class _YamlNode:
    """A parsed value. ``size`` and ``height`` are computed as if all aliases were expanded."""

    __slots__ = ("children", "height", "is_merge", "size", "text", "value")

    def __init__(self, value: Any, children: Children, size: int, height: int) -> None:
        self.value = value
        self.children = children
        self.size = size
        self.height = height
        self.text: str | None = None  # the text of a scalar
        self.is_merge = False


class _Frame:
    """A mapping or list that has not been closed yet."""

    __slots__ = ("anchor", "column", "height", "key", "line", "marks", "merges", "size", "value")

    def __init__(self, value: Any, marks: Any, event: Any) -> None:
        self.value = value
        self.marks = marks
        self.line = event.start_mark.line + 1
        self.column = event.start_mark.column + 1
        self.anchor = event.anchor
        self.key: Mark | None = None  # the mark of the open pair; its `text` is the key
        self.merges: list[_YamlNode] | None = None
        self.size = 1
        self.height = 1


class _Builder:
    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _YamlNode | None] = {}
        self._root: tuple[_YamlNode, Mark] | None = None
        self._documents = 0
        self._aliased = 0
        self._has_original_text = False

    def document(self) -> SourceDocument:
        if self.problems:
            raise AuthorError(*self.problems)
        if self._root is None or self._root[0].value is None:
            raise AuthorError(Problem("the file is empty", "", Place(self.path)))
        node, mark = self._root
        return SourceDocument(node.value, mark, has_original_text=self._has_original_text)

    def document_start(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            self._stop(event, "a second YAML document starts here", "use one document per file")

    def scalar(self, event: Any) -> None:
        text = event.value
        node = _YamlNode(text, None, 1, 0)
        node.text = text
        if event.tag is not None:
            self._read_tagged(node, event)
        elif event.implicit[0]:
            node.is_merge = text == "<<"
            try:
                node.value = parse_scalar(text)
            except ValueError as error:
                self._note(event, str(error), "quote it if it is meant as a string")
        self._deliver(node, event, event.anchor)

    def _read_tagged(self, node: _YamlNode, event: Any) -> None:
        if event.tag == _MERGE and event.value == "<<":
            node.is_merge = True
        elif self._is_known_tag(event):
            try:
                node.value = parse_tagged_scalar(event.tag, event.value)
            except ValueError as error:
                self._note(event, str(error), "remove the tag, or use a value that matches it")

    def _is_known_tag(self, event: Any) -> bool:
        if event.tag in STANDARD_TAGS:
            return True
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        self._note(event, f"the tag '{tag}' is not allowed", "remove it; only plain YAML values are allowed")
        return False

    def start(self, event: Any) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise AuthorError(*self.problems, _too_deep(self._place(event)))
        self._refuse_as_key(event)
        is_mapping = type(event) is yaml.MappingStartEvent
        if event.tag is not None and self._is_known_tag(event):
            fits = ("!", "tag:yaml.org,2002:" + ("map" if is_mapping else "seq"))
            if event.tag not in fits:
                got = "a mapping" if is_mapping else "a list"
                self._note(
                    event, f"{got} cannot have the tag '!!{event.tag.rpartition(':')[2]}'", "remove it"
                )
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Frame({}, {}, event) if is_mapping else _Frame([], [], event))

    def end(self, _event: Any) -> None:
        frame = self._stack.pop()
        node = _YamlNode(frame.value, frame.marks, frame.size, frame.height)
        for merged in frame.merges or ():
            _merge(node, merged)
        if frame.anchor:
            self._anchors[frame.anchor] = node
        self._add(node, Mark(self.path, frame.line, frame.column, frame.marks))

    def alias(self, event: Any) -> None:
        name = event.anchor
        node = self._anchors.get(name)
        if node is None:
            if name in self._anchors:
                self._stop(event, f"'*{name}' refers to a value that contains it", "write out the value")
            self._stop(event, f"'*{name}' refers to an undefined anchor", f"define &{name} before this line")
        self._aliased += node.size
        if self._aliased > MAX_ALIASED:
            what = f"the aliases expand to more than {MAX_ALIASED:,} values"
            self._stop(event, what, "use fewer nested aliases")
        if len(self._stack) + node.height > MAX_DEPTH:
            raise AuthorError(*self.problems, _too_deep(self._place(event)))
        if node.text is None:
            self._refuse_as_key(event)
        self._deliver(node, event, None)

    def _deliver(self, node: _YamlNode, event: Any, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = node
        start = event.start_mark
        mark = Mark(self.path, start.line + 1, start.column + 1, node.children)
        if node.value is not None and node.text is not None and node.text != canonical_text(node.value):
            self._has_original_text = True
            mark.text = node.text
        self._add(node, mark)

    def _add(self, node: _YamlNode, mark: Mark) -> None:
        if not self._stack:
            self._root = (node, mark)
            return
        frame = self._stack[-1]
        frame.size += node.size
        frame.height = max(frame.height, node.height + 1)
        if isinstance(frame.value, list):
            frame.value.append(node.value)
            frame.marks.append(mark)
        elif frame.key is None:
            self._open_pair(frame, node, mark)
        else:
            self._close_pair(frame, frame.key, node, mark)

    def _open_pair(self, frame: _Frame, node: _YamlNode, mark: Mark) -> None:
        key = mark.text = node.text and sys.intern(node.text)  # a file repeats a few keys
        frame.key = mark
        if node.is_merge:
            if frame.merges is not None:
                self._note(mark, "'<<' appears twice", "use <<: [*one, *two]")
            frame.merges = []
        elif key in frame.value:
            line = frame.marks[key].line
            self._note(mark, f"the key '{key}' appears twice, first on line {line}", "remove one of them")
        else:
            # Set at once, so that a repeated key is found whatever its values are.
            frame.marks[key] = mark
            frame.value[key] = None

    def _close_pair(self, frame: _Frame, opened: Mark, node: _YamlNode, mark: Mark) -> None:
        key = opened.text or ""
        frame.key = None
        if key == "<<" and frame.merges is not None and frame.marks.get(key) is not opened:
            frame.merges = self._mappings(node, mark)
            return
        opened.children = mark.children
        opened.text = mark.text
        frame.value[key] = node.value

    def _mappings(self, node: _YamlNode, mark: Mark) -> list[_YamlNode]:
        """Return the mappings that ``<<`` (merge key) refers to: a single mapping, or a list in which earlier
        mappings take precedence."""
        values = node.value if isinstance(node.value, list) else [node.value]
        children = node.children if isinstance(node.children, list) else [mark]
        if not all(isinstance(value, dict) for value in values):
            self._note(mark, "'<<' requires a mapping or a list of mappings", "use <<: *name")
            return []
        return [_YamlNode(v, m.children, 0, 0) for v, m in zip(values, children, strict=True)]

    def _refuse_as_key(self, event: Any) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame and isinstance(frame.value, dict) and frame.key is None:
            remedy = "put a string that starts with '{', '[' or '*' in quotes"
            self._stop(event, "a key must be a string", remedy)

    def _note(self, where: Any, what: str, remedy: str) -> None:
        """Record a mistake after which parsing can continue, so that a single run reports all mistakes."""
        self.problems.append(Problem(what, remedy, self._place(where)))
        if len(self.problems) >= MAX_PROBLEMS:
            raise AuthorError(*self.problems)

    def _stop(self, event: Any, what: str, remedy: str) -> NoReturn:
        raise AuthorError(*self.problems, Problem(what, remedy, self._place(event)))

    def _place(self, where: Any) -> Place:
        if isinstance(where, Mark):
            return where.place
        return _place_of(where, self.path)


def _ignore(_builder: _Builder, _event: Any) -> None:
    """Ignore an event that requires no action."""


# Not in the builder, which would then be part of a reference cycle and keep the document.
_HANDLERS: dict[type[yaml.Event], Callable[[_Builder, Any], None]] = {
    yaml.ScalarEvent: _Builder.scalar,
    yaml.AliasEvent: _Builder.alias,
    yaml.MappingStartEvent: _Builder.start,
    yaml.SequenceStartEvent: _Builder.start,
    yaml.MappingEndEvent: _Builder.end,
    yaml.SequenceEndEvent: _Builder.end,
    yaml.DocumentStartEvent: _Builder.document_start,
    yaml.DocumentEndEvent: _ignore,
    yaml.StreamStartEvent: _ignore,
    yaml.StreamEndEvent: _ignore,
}


def _merge(node: _YamlNode, merged: _YamlNode) -> None:
    """Merge a mapping into a node. Existing keys take precedence."""
    for key, value in merged.value.items():
        if key not in node.value:
            node.value[key] = value
            node.children[key] = merged.children[key]  # type: ignore[index]
