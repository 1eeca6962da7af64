"""Keys and values that are documented but not implemented yet, each with an alternative. They are rejected as
"not supported yet", never as unknown, and are never ignored. When one of them is implemented, its line must
be removed from this module."""

from __future__ import annotations

from collections.abc import Mapping

UNSUPPORTED_KEYS: Mapping[str, Mapping[str, str]] = {
    # Dotted paths, with `*` for any key or item; after `=` the only value that is meant.
    "scenario": {
        "unreviewed": "remove it once you have reviewed the scenario",
        "include": "put it under `defaults` in this file",
        "thresholds.*.votes": "use only `at_least`",
    },
    "config": {
        "thresholds.*.votes": "use only `at_least`",
        **{f"judge.{name}": "remove it" for name in ("votes", "votes_near", "models", "cascade")},
        "gates.require_calibrated": "use `thresholds` or `pass_rate`",
    },
}
