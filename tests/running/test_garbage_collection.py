"""The garbage collector runs less often while a command runs, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from agenteval.running.garbage_collection import reduce_garbage_collection


@pytest.mark.parametrize("fails", [False, True])
def test_it_runs_less_often_for_a_while(fails: bool) -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    assert frozen == 0
    try:
        with reduce_garbage_collection():
            during = gc.get_threshold()
            assert gc.get_freeze_count() > 0
            if fails:
                raise ValueError
    except ValueError:
        assert fails
    assert during[0] > before[0]
    assert during[1:] == before[1:]
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
