"""Which object a target names, and why there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.agentside.targets import module_files, same_names
from agenteval.agentside.targets.loading import Method, TargetError, load_agent, load_object

BOT = """
import functools

value = 5
nothing = None

class Bot:
    greeting = "Hi"

    def chat(self, text): return text

    async def later(self, text): return text

    @staticmethod
    def plain(text): return text

    @classmethod
    def made(cls): return cls

    part = functools.partialmethod(chat, "x")

    class Inner:
        def deep(self): return 1

    def __call__(self, text): return text

bot = Bot()

def answer(text): return text

def _hidden(): return 1

class Lazy:
    @property
    def broken(self): raise ValueError("no key")

    @property
    def quits(self): raise SystemExit(3)

lazy = Lazy()
"""


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A folder of the author's, whose modules are unknown before and after."""
    path, modules, claims = [*sys.path], {*sys.modules}, dict(same_names._CLAIMS)
    same_names._CLAIMS.clear()
    yield tmp_path
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        del sys.modules[name]
    same_names._CLAIMS.clear()
    same_names._CLAIMS.update(claims)
    module_files.module_of_file.cache_clear()
    same_names.claim_module.cache_clear()
    sys.path_importer_cache.pop(str(tmp_path), None)


def write(base: Path, name: str, source: str = BOT) -> None:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")


def failure(target: str, base: Path) -> TargetError:
    with pytest.raises(TargetError) as caught:
        load_object(target, str(base))
    assert str(caught.value) == caught.value.what
    return caught.value


@pytest.mark.parametrize(
    "location", ["loaded_bot.py", "loaded_bot", "./loaded_bot.py", "sub/../loaded_bot.py"]
)
def test_a_file_and_a_module(base: Path, location: str) -> None:
    (base / "sub").mkdir()
    write(base, "loaded_bot.py")
    assert load_object(f"{location}:value", str(base)) == 5
    assert load_object(f"{location}:nothing", str(base)) is None
    assert load_object(f"{location}:Bot.greeting", str(base)) == "Hi"
    assert load_object(f"{location}:Bot.Inner.deep", str(base)).__name__ == "deep"
    assert str(base) in sys.path


def test_the_folder_is_searched_first_and_once(base: Path) -> None:
    write(base, "loaded_bot.py")
    for _ in range(2):
        load_object("loaded_bot:value", str(base))
    assert sys.path[0] == str(base)
    assert sys.path.count(str(base)) == 1


def test_a_module_of_a_package(base: Path) -> None:
    write(base, "loaded_shop/__init__.py", "")
    write(base, "loaded_shop/bot.py")
    assert load_object("loaded_shop.bot:value", str(base)) == 5
    one = load_object("loaded_shop.bot:answer", str(base))
    assert load_object("loaded_shop/bot.py:answer", str(base)) is one


AGENTS: dict[str, bool] = {
    "Bot.chat": True,
    "Bot.later": True,
    "Bot.part": True,
    "Bot.__call__": True,
    "Bot.Inner.deep": True,
    "Bot.plain": False,
    "Bot.made": False,
    "Bot.Inner": False,
    "Bot.greeting": False,
    "Bot": False,
    "bot.chat": False,
    "answer": False,
}


@pytest.mark.parametrize("attribute", AGENTS)
def test_a_method_that_needs_an_instance(base: Path, attribute: str) -> None:
    write(base, "loaded_bot.py")
    found = load_agent(f"loaded_bot.py:{attribute}", str(base))
    plain = load_object(f"loaded_bot.py:{attribute}", str(base))
    assert isinstance(found, Method) is AGENTS[attribute]
    if isinstance(found, Method):
        owner, _, name = attribute.rpartition(".")
        assert found == (load_object(f"loaded_bot.py:{owner}", str(base)), name)
    else:
        assert found == plain
    assert not isinstance(plain, Method)


@pytest.mark.parametrize("target", ["bot.py", "bot", "", ":", ":answer", "bot.py:"])
def test_a_target_that_names_no_attribute(base: Path, target: str) -> None:
    error = failure(target, base)
    assert f"'{target}'" in error.what
    assert "file.py:name" in error.remedy
    assert "package.module:name" in error.remedy
    assert str(base) not in sys.path


def test_an_attribute_that_is_not_there(base: Path) -> None:
    write(base, "loaded_bot.py", "def answer(): ...\ndef ask(): ...\ndef _hidden(): ...\n")
    error = failure("loaded_bot.py:anser", base)
    assert "'loaded_bot.py'" in error.what
    assert error.missing_name == "anser"
    assert error.attribute_names == ("answer", "ask")
    assert error.remedy == ""


@pytest.mark.parametrize(
    ("attribute", "known"), [("Bot.chatt", "chat"), ("Bot.Inner.chat", "deep"), ("Bott.chat", "Bot")]
)
def test_an_attribute_within_that_is_not_there(base: Path, attribute: str, known: str) -> None:
    write(base, "loaded_bot.py")
    error = failure(f"loaded_bot.py:{attribute}", base)
    assert error.missing_name == attribute
    assert known in error.attribute_names
    assert not [name for name in error.attribute_names if name.startswith("_")]


def test_what_has_no_names_of_its_own(base: Path) -> None:
    write(base, "loaded_bot.py")
    assert failure("loaded_bot.py:value.x", base).attribute_names == ()


@pytest.mark.parametrize(("name", "kind"), [("broken", "ValueError"), ("quits", "SystemExit")])
def test_an_attribute_that_cannot_be_read(base: Path, name: str, kind: str) -> None:
    write(base, "loaded_bot.py")
    error = failure(f"loaded_bot.py:lazy.{name}", base)
    assert f"'{name}'" in error.what
    assert kind in error.what
    assert error.missing_name == ""
    assert isinstance(error.__cause__, Exception)


@pytest.mark.parametrize("location", ["nowhere.py", "sub/nowhere", "sub/"])
def test_a_file_that_is_not_there(base: Path, location: str) -> None:
    (base / "sub").mkdir()
    error = failure(f"{location}:x", base)
    assert "no such file" in error.what
    assert str(base) in error.remedy


@pytest.mark.parametrize("location", ["no_such_module", "no_such_module.inner", "loaded_shop.no_such"])
def test_a_module_that_is_not_there(base: Path, location: str) -> None:
    write(base, "loaded_shop/__init__.py", "")
    error = failure(f"{location}:x", base)
    assert "no such module" in error.what
    assert f"'{location}'" in error.what
    assert error.remedy


IMPORTS: dict[str, tuple[str, list[str]]] = {
    "a module that it needs is missing": (
        "import no_such_library",
        ["no_such_library", "ModuleNotFoundError"],
    ),
    "a mistake": ("raise ValueError('no key')", ["ValueError", "no key", "loaded_bot.py:1"]),
    "an end": ("import sys\nsys.exit(2)", ["SystemExit", "2"]),
    "no Python": ("def (", ["SyntaxError", "loaded_bot.py:1"]),
}


@pytest.mark.parametrize("location", ["loaded_bot.py", "loaded_bot"])
@pytest.mark.parametrize(("source", "parts"), IMPORTS.values(), ids=IMPORTS)
def test_an_import_that_fails(base: Path, location: str, source: str, parts: list[str]) -> None:
    write(base, "loaded_bot.py", source)
    error = failure(f"{location}:x", base)
    assert "no such" not in error.what
    for part in (f"'{location}'", *parts):
        assert part in error.what
    assert error.remedy == ""
    assert "loaded_bot" not in sys.modules


@pytest.mark.parametrize("missing", ["loaded_shop.other", "loaded_shop.bot.inner"])
def test_a_missing_module_of_the_same_package_is_named(base: Path, missing: str) -> None:
    write(base, "loaded_shop/__init__.py", "")
    write(base, "loaded_shop/bot.py", f"import {missing}")
    error = failure("loaded_shop.bot:x", base)
    assert "no such" not in error.what
    for part in ("'loaded_shop.bot'", f"'{missing}'", "bot.py:1"):
        assert part in error.what


def test_a_target_of_another_module_with_its_name_leaves_the_path_as_it_was(base: Path) -> None:
    for folder in ("old", "new"):
        write(base, f"{folder}/loaded_prices.py", f"price = '{folder}'")
        write(base, f"{folder}/{folder}_bot.py", "from loaded_prices import price")
    assert load_object("old_bot.py:price", str(base / "old")) == "old"
    before = [*sys.path]
    error = failure("new_bot.py:price", base / "new")
    assert "loaded_prices" in error.what
    assert error.remedy == same_names.SameNameError.remedy
    assert sys.path == before


def test_a_module_with_the_name_of_another_is_refused(base: Path) -> None:
    for folder in ("old", "new"):
        write(base, f"{folder}/loaded_bot.py", f"name = '{folder}'")
    assert load_object("loaded_bot:name", str(base / "old")) == "old"
    error = failure("loaded_bot:name", base / "new")
    assert "'loaded_bot'" in error.what
    assert error.remedy == same_names.SameNameError.remedy


def test_the_last_colon_divides(base: Path) -> None:
    with pytest.raises(TargetError) as caught:
        load_object("a:b/bot.py:x", str(base))
    assert "'a:b/bot.py'" in caught.value.what


def test_the_parts_of_a_refusal() -> None:
    error = TargetError("what", "remedy", missing_name="a", attribute_names=iter(["b", "c"]))
    assert (error.what, error.remedy, error.missing_name, error.attribute_names) == (
        "what",
        "remedy",
        "a",
        ("b", "c"),
    )
    plain: Any = TargetError("what")
    assert (plain.remedy, plain.missing_name, plain.attribute_names) == ("", "", ())
