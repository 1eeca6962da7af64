"""What every value keeps to."""

import pytest

from agenteval.core.plan import Plan


def test_a_copy_with_a_field_that_there_is_not_is_an_error_in_every_test() -> None:
    with pytest.raises(TypeError, match="Plan has no field severities"):
        Plan().model_copy(update={"severities": {}})
