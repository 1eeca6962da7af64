"""While tests run, a value that is copied with a field that it does not have is an error: pydantic would keep
the field silently, and the change would be lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.core.value import Value, ValueT


def refuse_unknown_fields() -> None:
    copied = Value.model_copy

    def model_copy(self: ValueT, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> ValueT:
        unknown = set(update or ()) - type(self).model_fields.keys()
        if unknown and self.model_config["extra"] == "forbid":
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return copied(self, update=update, deep=deep)

    Value.model_copy = model_copy  # type: ignore[method-assign]
