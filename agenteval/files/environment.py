"""Applies environment variables to the configuration: interpolates ``${VAR}`` in strings, and reads
``AGENTEVAL_*`` variables as overrides of keys. Also determines which values are secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.files.located_value import LocatedValue
from agenteval.files.redaction import MASK, SECRET_HEADER, SHORTEST_SECRET
from agenteval.files.value_parts import Loc, leaves
from agenteval.files.yaml_scalars import parse_scalar
from agenteval.files.yaml_source import Mark, parse_yaml

PREFIX = "AGENTEVAL_"

_SCALAR_KEYS = (
    *("epochs", "max_turns", "concurrency", "agent_concurrency", "fail_on_severity", "severity_from"),
    *("fault_tolerance", "unmocked_tools", "now", "on_undecided", "seed"),
)
_PATH_BY_VARIABLE = {PREFIX + key.upper(): (key,) for key in _SCALAR_KEYS} | {
    PREFIX + "MODEL": ("models", "default")
}
SHARD_VARIABLE = f"{PREFIX}SHARD"
"""The variable that ``--shard`` stands for. It is no key of the configuration."""
_MAY_MAP = frozenset((f"{PREFIX}EPOCHS",))
"""The override variables whose value may be a mapping, such as ``{min: 3, max: 20}``."""

_REFERENCE = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{(?P<bad>[^}]*\}?)"
)
_SECRET_NAME = re.compile(r"authorization|api.?key|token|cookie|secret|passw", re.IGNORECASE)
_SECRET_PLACES = frozenset(("headers", "body", "extra", "options", "request", "endpoint", "base_url"))
"""The keys below which the value of a variable is never shown, regardless of the name of the variable."""
_SECRET_KEYS = {
    "headers": SECRET_HEADER,
    **dict.fromkeys(("body", "extra", "options", "request"), _SECRET_NAME),
}
"""Maps each secret place to a pattern for the keys below it whose literal values are secrets."""
_ADDRESSES = ("endpoint", "base_url")

_URL_USER = re.compile(r"(?<=//)[^/@\s]+(?=@)")
_URL_QUERY = re.compile(r"(?<=[?&])([^=&#]*(?:key|token|secret|passw)[^=&#]*=)([^&#]+)", re.IGNORECASE)


class ExpandedText(str):
    """A string in which environment variables have been expanded."""

    __slots__ = ("unexpanded", "values")

    unexpanded: str
    """The string as written."""
    values: tuple[tuple[str, str], ...]
    """The values of the variables, keyed by name."""


TEMPLATE_NAMES = frozenset(
    ("message", "messages", "session", "tools", "turn", "tool_results", "mcp_url", "database")
)
"""Names in an agent's ``request`` that are not variables but placeholders filled in for each request."""
TEMPLATE_NAME = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
RUN_NAMES = frozenset(("message", "session", "messages_file", "turn"))
"""Names in the ``run`` command of a text program that are not variables but placeholders filled in for each
turn."""
_SESSION = frozenset(("session",))
_JOB = frozenset(("job",))
_TEMPLATES = (TEMPLATE_NAMES, RUN_NAMES, _JOB)
"""The names of the places whose strings are always filled in. A header or an endpoint is filled in only if it
contains ``${session}``."""
_FILLED_LATER = {
    ("request",): TEMPLATE_NAMES,
    ("command", "run"): RUN_NAMES,
    ("headers",): _SESSION,
    ("endpoint",): _SESSION,
    ("poll", "url"): _JOB,
}
"""The names that stay unexpanded in the strings below each key of an agent."""


def expand_variables(
    config: LocatedValue,
    environ: Mapping[str, str],
    problems: list[Problem],
    *,
    skip: frozenset[Loc] = frozenset(),
) -> LocatedValue:
    """Expand (by interpolation) the environment variables ``${VAR}`` and ``${VAR:-default}`` in the strings
    of the configuration. Expanded values are not expanded again. As in a shell, the default also replaces an
    empty variable. ``$${`` is an escaped ``${``.

    Names that are filled in for each request or turn (``_FILLED_LATER``) are kept. A string that will be
    filled in also keeps the escaped form ``$${``, in which it contains the ``${`` of a variable's value.
    ``skip`` lists the locations to leave unchanged. Mistakes are appended to ``problems``."""
    return LocatedValue(_expanded(*config, (), _Expansion(environ, problems, skip)), config.mark)


class _Expansion(NamedTuple):
    environ: Mapping[str, str]
    problems: list[Problem]
    skip: frozenset[Loc]


def _expanded(value: Any, mark: Mark, path: Loc, expansion: _Expansion) -> Any:
    if path in expansion.skip:
        return value
    if isinstance(value, str):
        return _expand_text(value, mark, _names_at(path), expansion) if "${" in value else value
    if isinstance(value, dict):
        return {k: _expanded(item, mark.find((k,)), (*path, k), expansion) for k, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, mark.find((i,)), (*path, i), expansion) for i, item in enumerate(value)]
    return value


def _names_at(path: Loc) -> frozenset[str]:
    """Return the names that stay unexpanded at a location in the configuration."""
    inside = {"agent": 1, "agents": 2, "compare": 2}.get(str(path[0]) if path else "", len(path))
    keys = path[inside:]
    keys = keys[1:] if keys[:1] == ("options",) else keys
    found = (names for start, names in _FILLED_LATER.items() if keys[: len(start)] == start)
    return next(found, frozenset())


def _expand_text(
    text: str, mark: Mark, unexpanded_names: frozenset[str], expansion: _Expansion
) -> ExpandedText:
    environ, problems = expansion.environ, expansion.problems
    values: list[tuple[str, str]] = []

    def escape(text: str) -> str:
        return text.replace("${", "$${")

    def expand(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if match["bad"] is not None:
            remedy = "use ${NAME} or ${NAME:-default}, or $${ for a literal ${"
            problems.append(
                Problem(f"'{match[0][:40]}' is not a valid variable reference", remedy, mark.place)
            )
        elif name is None:
            return escape("${")
        elif name in unexpanded_names and default is None:
            return match[0]
        elif environ.get(name) or (name in environ and default is None):
            values.append((name, environ[name]))
            return escape(environ[name])
        elif default is None:
            problems.append(_not_set_problem(name, unexpanded_names, mark))
        return escape(default or "")

    made = _REFERENCE.sub(expand, text)
    is_template = unexpanded_names in _TEMPLATES or any(f"${{{name}}}" in made for name in unexpanded_names)
    expanded = ExpandedText(made if is_template else made.replace("$${", "${"))
    expanded.unexpanded = text
    expanded.values = tuple(values)
    return expanded


def _not_set_problem(name: str, unexpanded_names: frozenset[str], mark: Mark) -> Problem:
    remedy = f"set it, or use ${{{name}:-default}}"
    if unexpanded_names and (near := did_you_mean(name, unexpanded_names)):
        remedy = f"{near.rstrip('?')}, which agenteval fills in? Or {remedy}" if "did" in near else remedy
    return Problem(f"the environment variable {name} is not set", remedy, mark.place)


def has_unset_variable(text: Any, environ: Mapping[str, str]) -> bool:
    """Check whether an expanded string refers to a variable that is not set and has no default. In a replay,
    such a variable is expanded to a mask, because its value is not needed."""
    if not isinstance(text, ExpandedText):
        return False
    found = _REFERENCE.finditer(text.unexpanded)
    needed = (match["name"] for match in found if match["name"] and match["default"] is None)
    return any(environ.get(name) is None for name in needed)


def referenced_variables(value: Any) -> Iterator[str]:
    """Yield the variable names that occur in ``${…}`` in a configuration."""
    for _, text in leaves(value):
        if isinstance(text, str):
            yield from (match["name"] for match in _REFERENCE.finditer(text) if match["name"])


def read_variable_overrides(
    environ: Mapping[str, str], *, mentioned: set[str], problems: list[Problem]
) -> LocatedValue:
    """Read the configuration overrides from ``AGENTEVAL_*`` environment variables, parsed as YAML scalars.
    Empty variables are ignored. Unknown variables are problems, unless the file refers to them
    (``mentioned``)."""
    found: dict[str, Any] = {}
    marks: dict[str, Mark] = {}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(PREFIX) or not text.strip():
            continue
        if variable in _PATH_BY_VARIABLE:
            top, *below = _PATH_BY_VARIABLE[variable]
            value = {below[0]: text.strip()} if below else _parse_override(variable, text.strip(), problems)
            found[top] = value
            inner = {key: Mark(variable) for key in value} if isinstance(value, dict) else None
            marks[top] = Mark(variable, children=inner)
        elif variable not in mentioned and variable != SHARD_VARIABLE:
            problems.append(_unknown_variable(variable))
    return LocatedValue(found, Mark("", children=marks))


def _parse_override(variable: str, text: str, problems: list[Problem]) -> Any:
    try:
        is_mapping = variable in _MAY_MAP and text.startswith("{")
        return parse_yaml(text.encode(), variable).value if is_mapping else parse_scalar(text)
    except AuthorError as error:
        problems += error.problems
        return None
    except ValueError as error:
        problems.append(Problem(str(error), "", Place(variable)))
        return None


def _unknown_variable(variable: str) -> Problem:
    key = variable.removeprefix(PREFIX).lower()
    if key in Config.model_fields and key not in Config.INTERNAL:
        return Problem(
            f"'{key}' cannot be set by an environment variable",
            "set it in the configuration file",
            Place(variable),
        )
    return Problem("unknown environment variable", did_you_mean(variable, _PATH_BY_VARIABLE), Place(variable))


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────


def unwrap_expanded(value: Any) -> Any:
    """Replace expanded strings in ``value`` with plain strings."""
    return _replace_expanded(value, str)


def mask_config(value: Any) -> Any:
    """Return ``value`` in a form that may be stored, with variables unexpanded and literal secrets masked."""
    return _mask(_replace_expanded(value, lambda text: text.unexpanded), "")


def _replace_expanded(value: Any, convert: Any) -> Any:
    if isinstance(value, ExpandedText):
        return convert(value)
    if isinstance(value, dict):
        return {key: _replace_expanded(item, convert) for key, item in value.items()}
    return [_replace_expanded(item, convert) for item in value] if isinstance(value, list) else value


def _mask(value: Any, place: str) -> Any:
    """Mask the secrets in a value. ``place`` is the nearest parent key that is a secret place."""
    if isinstance(value, dict):
        return {
            key: MASK
            if _is_secret_key(key, place) and not _shows_no_secret(item)
            else _mask(item, key if key in _SECRET_PLACES else place)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mask(item, place) for item in value]
    if isinstance(value, str) and place in _ADDRESSES:
        users_hidden = _URL_USER.sub(lambda m: ":".join(map(_masked, m[0].split(":"))), value)
        return _URL_QUERY.sub(lambda m: m[1] + _masked(m[2]), users_hidden)
    return value


def _is_secret_key(key: str | int, place: str) -> bool:
    """Check whether a key directly inside a secret place is the name of a secret."""
    pattern = _SECRET_KEYS.get(place)
    return pattern is not None and isinstance(key, str) and bool(pattern.search(key))


def _shows_no_secret(value: Any) -> bool:
    """Check whether a value reveals no part of a secret. This is true for ``${NAME}``, for ``Bearer
    ${NAME}``, and for any value that is not a string."""
    if not isinstance(value, str):
        return True
    return bool(re.fullmatch(r"(?:[A-Za-z]+ +)?\$\{[A-Za-z_][A-Za-z0-9_]*\}", value.strip()))


def _masked(text: str) -> str:
    return text if _shows_no_secret(text) else MASK


def find_config_secrets(value: Any) -> tuple[str, ...]:
    """Return every string in an expanded configuration that must not be shown, longest first. These are the
    values of variables that occur in secret places or whose names suggest a secret, and literal secrets in
    headers, bodies and addresses."""
    found: set[str] = set()
    for text in _secrets(value):
        words = text.split()
        found |= {text, text.strip(), *(words[1:] if len(words) == 2 else ())}  # Bearer XYZ
    return tuple(sorted((s for s in found if len(s) >= SHORTEST_SECRET), key=lambda s: (-len(s), s)))


def _secrets(value: Any) -> Iterator[str]:
    for loc, text in leaves(value):
        if not isinstance(text, str):
            continue
        *around, key = loc
        place = _secret_place(loc)
        if _is_secret_key(key, _secret_place(around)) and not _shows_no_secret(text):
            yield str(text)
        if isinstance(text, ExpandedText):
            yield from (
                variable_value for name, variable_value in text.values if place or _SECRET_NAME.search(name)
            )
        if place in _ADDRESSES:
            yield from (match[2] for match in _URL_QUERY.finditer(text))
            yield from (_url_secret(match[0]) for match in _URL_USER.finditer(text))


def _url_secret(user: str) -> str:
    """Return the secret in the part of an address before ``@``: the password or, if there is none, the user,
    which then is a token."""
    name, _, password = user.partition(":")
    return password or name


def _secret_place(loc: Sequence[str | int]) -> str:
    """Return the nearest key on a path that is a secret place, or an empty string if there is none."""
    return next((str(key) for key in reversed(loc) if key in _SECRET_PLACES), "")
