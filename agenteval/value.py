"""The one configuration that every value of agenteval shares."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen record. An unknown field is an error: nothing that an author writes is ignored."""

    # Built when first used: most commands use few of the models.
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)
