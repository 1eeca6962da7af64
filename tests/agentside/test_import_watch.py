"""What the import of an author's file calls, and how the warning tells it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agenteval.agentside.import_watch import ImportWatch
from agenteval.agentside.world import ToolAnswer, current_world, open_worlds


def watch(base: Path, declared: tuple[str, ...] = ("book",), *, others: bool = False) -> ImportWatch:
    return ImportWatch("shop/bot.py:Bot.chat", str(base), declared, runs_others=others)


def played(watching: ImportWatch, *names: str) -> list[Any]:
    """What calls of these tools give during an import."""
    with watching.watch_imports():
        world = current_world()
        assert world is not None
        return [world.call_sync(name, {}, lambda: "real") for name in names]


def finish(coroutine: Any) -> Any:
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


async def real() -> str:
    return "real"


def test_an_import_that_calls_nothing_is_not_mentioned(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    assert watching.import_warning == ""
    assert played(watching) == []
    assert watching.import_warning == ""


@pytest.mark.parametrize(
    ("name", "others", "runs"),
    [("book", False, False), ("book", True, False), ("look", False, False), ("look", True, True)],
)
def test_which_tools_run(tmp_path: Path, name: str, others: bool, runs: bool) -> None:
    for is_async in (False, True):
        watching = watch(tmp_path, others=others)
        with watching.watch_imports():
            world = current_world()
            assert world is not None
            if is_async:
                answer = finish(world.call(name, {}, real))
            else:
                answer = world.call_sync(name, {}, lambda: "real")
        assert answer.is_error is not runs
        if runs:
            assert answer == ToolAnswer("real")
        else:
            assert [*answer.value] == ["error"]
            assert name in answer.value["error"]
            assert "shop/bot.py" in answer.value["error"]
        outcome = "the real tool ran" if runs else "not run"
        assert f"{name} ({outcome})" in watching.import_warning


def test_what_the_suite_declares_is_mocked(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    assert (watching.mocks("book"), watching.mocks("look")) == (True, False)


def test_another_agent_that_is_called_runs(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    with watching.watch_imports():
        world = current_world()
        assert world is not None
        assert world.record_sync("book", {}, lambda: "real") == "real"
        assert finish(world.record("desk", {}, real)) == "real"
    assert "book (the real tool ran), desk (the real tool ran)" in watching.import_warning


def test_calls_are_counted_in_their_order(tmp_path: Path) -> None:
    watching = watch(tmp_path, others=True)
    played(watching, "look", "book", "look", "look")
    played(watching, "book")
    assert "look (3 times, the real tool ran), book (2 times, not run)" in watching.import_warning


def test_the_warning_says_what_was_imported_and_what_to_do(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    played(watching, "book")
    assert "importing shop/bot.py runs the agent" in watching.import_warning
    assert 'if __name__ == "__main__":' in watching.import_warning
    for target, shown in (("shop", "shop"), ("a:b/bot.py:x", "a:b/bot.py")):
        other = ImportWatch(target, str(tmp_path), (), runs_others=False)
        played(other, "book")
        assert f"importing {shown} runs" in other.import_warning


@pytest.mark.parametrize(("count", "text"), [(1, "1 model request sent"), (2, "2 model requests sent")])
def test_requests_to_models_are_counted(tmp_path: Path, count: int, text: str) -> None:
    watching = watch(tmp_path)
    for _ in range(count):
        with watching.watch_imports():
            world = current_world()
            assert world is not None
            assert world.record_exchange("x")
    assert text in watching.import_warning
    assert "tools were called" not in watching.import_warning


def test_the_first_fault_is_told(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    for fault in ("first fault", "second fault"):
        with watching.watch_imports():
            world = current_world()
            assert world is not None
            world.record_fault(fault)
    assert "first fault" in watching.import_warning
    assert "second fault" not in watching.import_warning


def test_all_of_it_in_one_warning(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    with watching.watch_imports():
        world = current_world()
        assert world is not None
        world.call_sync("book", {}, lambda: "real")
        world.record_exchange("x")
        world.record_fault("a fault")
    assert "tools were called: book (not run); 1 model request sent; a fault" in watching.import_warning


def test_after_the_import_nothing_is_of_its_world(tmp_path: Path) -> None:
    before = len(open_worlds())
    watching = watch(tmp_path)

    def fail() -> None:
        with watching.watch_imports():
            assert len(open_worlds()) == before + 1
            assert current_world() is not None
            current_world().record_exchange("x")  # type: ignore[union-attr]
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert current_world() is None
    assert len(open_worlds()) == before
    assert "1 model request" in watching.import_warning


def run_file(path: Path, call: Callable[[], Any]) -> None:
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"call": call, "__name__": path.stem})


def test_the_line_that_called_is_told_from_the_folder(tmp_path: Path) -> None:
    base = tmp_path / "suite"
    (base / "shop").mkdir(parents=True)
    inside, outside = base / "shop" / "bot.py", tmp_path / "other.py"
    for path in (inside, outside):
        path.write_text("\n\ndef ask():\n    call()\n\nask()\n")
    for path, shown in ((inside, str(Path("shop", "bot.py"))), (outside, str(outside))):
        watching = watch(base)
        with watching.watch_imports():
            world = current_world()
            assert world is not None
            run_file(path, partial(world.call_sync, "book", {}, lambda: "real"))
        assert f"({shown}:6)" in watching.import_warning


def test_the_first_place_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "bot.py"
    path.write_text("call()\ncall()\n")
    watching = watch(tmp_path)
    with watching.watch_imports():
        world = current_world()
        assert world is not None
        run_file(path, lambda: world.call_sync("book", {}, lambda: "real"))
    assert "(bot.py:1)" in watching.import_warning
    assert "book (2 times, not run)" in watching.import_warning


def test_code_of_no_file_has_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_getframe", lambda: None)
    watching = watch(tmp_path)
    played(watching, "book")
    assert "runs the agent before" in watching.import_warning
