"""Keys and values that are documented but not implemented yet, each with an alternative. They are rejected as
"not supported yet", never as unknown, and are never ignored. When one of them is implemented, its line here
must be removed."""

from __future__ import annotations

from collections.abc import Mapping

_NO_SQL = "use returns, sequence or python"
_NO_STATE = "expect the tool calls instead"
_NO_HOOKS = "do it where the agent's module is imported"

UNSUPPORTED_KEYS: Mapping[str, Mapping[str, str]] = {
    # Dotted paths, with `*` for any key or item; after `=` the only value that is meant. For reporters:
    # their names.
    "scenario": {
        "history": "write the earlier messages as turns of their own",
        "note": "write it as a comment, # …",
        "user_prompt": "write what the user is like into profile, and what it wants into goal",
        "user_tools": "let the user describe in a turn what happened",
        "min_turns": "write the first messages as turns",
        "skip": "leave it out by a tag (--tag), or with exclude",
        "unreviewed": "remove it once you have read the scenario",
        **dict.fromkeys(("setup", "teardown"), _NO_HOOKS),
        "include": "write it under defaults: of this file",
        **dict.fromkeys(("state", "world"), "use returns, sequence or python for the tools"),
        "turns.*.tool_calls": "let the user state in its message what it did",
        "expect.state": _NO_STATE,
        "turns.*.expect.state": _NO_STATE,
        "thresholds.*.votes": "write at_least alone",
        **dict.fromkeys((f"tools.*.{key}" for key in ("rules", "sql", "one", "none")), _NO_SQL),
        "tools.*.sequence.*.sql": _NO_SQL,
        "tools.*.faults": "use error, or a sequence with errors",
    },
    "config": {
        "thresholds.*.votes": "write at_least alone",
        **{f"judge.{name}": "remove it" for name in ("votes", "votes_near", "models", "cascade")},
        "judge.calls=review": "write separate or shared",
        "gates.require_calibrated": "use thresholds, or pass_rate",
    },
    "reporter": {
        "html": "use markdown",
        "csv": "use json",
        "MODULE:CLASS": "register it under the entry point group agenteval.reporters",
    },
}
