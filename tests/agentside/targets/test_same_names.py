"""Which imports of the author's files would get a module of another file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agenteval.agentside.targets import same_names
from agenteval.agentside.targets.same_names import SameNameError, claim_imports, claim_module


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The author's folder ``new``; a folder ``old`` with modules of the same names is searched first."""
    for name in ("sn_prices", "sn_menu", "sn_shop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    claims = dict(same_names._CLAIMS)
    same_names._CLAIMS.clear()
    for folder in ("old", "new"):
        write(tmp_path, f"{folder}/sn_prices.py")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "old"), str(tmp_path / "new"), *sys.path])
    yield tmp_path
    same_names._CLAIMS.clear()
    same_names._CLAIMS.update(claims)
    claim_module.cache_clear()


def write(base: Path, name: str, source: str = "") -> Path:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return path


def refusal(base: Path, source: str, *, file: str = "sn_bot.py") -> str:
    """Why the file in the folder ``new`` may not be loaded, or nothing."""
    path = write(base, f"new/{file}", source)
    try:
        claim_imports([path], [str(base / "new")])
    except SameNameError as error:
        return str(error)
    return ""


TAKEN: dict[str, tuple[str, int]] = {
    "import": ("import sn_prices", 1),
    "import as": ("import sn_prices as p", 1),
    "import of several": ("import os, sn_prices", 1),
    "from": ("import os\nfrom sn_prices import price", 2),
    "all of it": ("from sn_prices import *", 1),
    "within a function": ("def f():\n    import sn_prices", 2),
    "within a class": ("class A:\n    def f(self):\n        import sn_prices", 3),
    "within a loop": ("for _ in ():\n    import sn_prices", 2),
    "within a with": ("with open('x'):\n    import sn_prices", 2),
    "under a condition": ("if 5:\n    import sn_prices", 2),
    "otherwise": ("if 5:\n    pass\nelse:\n    import sn_prices", 4),
    "unless for types": ("if TYPE_CHECKING:\n    pass\nelse:\n    import sn_prices", 4),
    "under another comparison": ("if __name__ != '__main__':\n    import sn_prices", 2),
    "under another name": ("if name == '__main__':\n    import sn_prices", 2),
    "tried": ("try:\n    import sn_prices\nexcept ImportError:\n    pass", 2),
    "after a try": ("try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import sn_prices", 6),
    "at last": ("try:\n    pass\nfinally:\n    import sn_prices", 4),
    "for want of another": ("try:\n    import sn_nothing\nexcept ImportError:\n    import sn_prices", 4),
    "for want of one of two": (
        "try:\n    import sn_bot, sn_nothing\nexcept ImportError:\n    import sn_prices",
        4,
    ),
    "in a handler of nothing": ("try:\n    pass\nexcept ImportError:\n    import sn_prices", 4),
}


@pytest.mark.parametrize(("source", "line"), TAKEN.values(), ids=TAKEN)
def test_an_import_that_would_get_another_file_is_refused(base: Path, source: str, line: int) -> None:
    found = refusal(base, source)
    assert f"sn_bot.py:{line} imports 'sn_prices'" in found
    places = [found.index(str(Path(folder, "sn_prices.py"))) for folder in ("new", "old")]
    assert places == sorted(places)


FREE: dict[str, str] = {
    "none": "",
    "of the standard library": "import json, os.path",
    "of an installed library": "import pytest",
    "of nothing": "import sn_nothing",
    "of what only one folder has": "import sn_bot",
    "for types": "if TYPE_CHECKING:\n    import sn_prices",
    "for types, by the module": "if typing.TYPE_CHECKING:\n    import sn_prices",
    "as a script": "if __name__ == '__main__':\n    import sn_prices",
    "as a script, turned round": "if '__main__' == __name__:\n    import sn_prices",
    "for want of one that is there": "try:\n    import sn_bot\nexcept ImportError:\n    import sn_prices",
    "relative": "from . import sn_prices",
    "relative to nothing": "from ... import sn_prices",
    "no Python": "import sn_prices\ndef (",
    "null bytes": "import sn_prices\0",
    "in a text": "'import sn_prices'",
}


@pytest.mark.parametrize("source", FREE.values(), ids=FREE)
def test_other_imports_are_free(base: Path, source: str) -> None:
    assert refusal(base, source) == ""


def test_a_file_that_is_not_python_is_not_read(base: Path) -> None:
    assert refusal(base, "import sn_prices", file="sn_bot.txt") == ""
    claim_imports([base / "new/sn_nowhere.py"], [str(base / "new")])


def test_each_file_is_read(base: Path) -> None:
    path, other = write(base, "new/sn_bot.py", "import sn_prices"), write(base, "new/sn_bot.txt")
    for files in ([path, other], [other, path]):
        with pytest.raises(SameNameError):
            claim_imports(files, [str(base / "new")])


def test_the_imports_of_an_installed_library_are_its_own(base: Path) -> None:
    assert refusal(base, "import sn_prices", file="site-packages/sn_bot.py") == ""
    assert refusal(base, "import sn_prices", file="packages/sn_bot.py")


def test_an_installed_module_may_come_first(base: Path) -> None:
    (base / "old/sn_prices.py").unlink()
    write(base, "site-packages/sn_prices.py")
    sys.path.insert(0, str(base / "site-packages"))
    assert refusal(base, "import sn_prices") == ""
    write(base, "dist-packages/sn_prices.py")
    sys.path.insert(0, str(base / "dist-packages"))
    assert refusal(base, "import sn_prices") == ""
    sys.path.insert(0, str(base / "old"))
    write(base, "old/sn_prices.py")
    assert refusal(base, "import sn_prices")


def test_imports_behind_imports_count(base: Path) -> None:
    write(base, "new/sn_menu.py", "\nimport sn_prices")
    assert "sn_menu.py:2 imports 'sn_prices'" in refusal(base, "import sn_menu")


def test_a_circle_of_imports_has_an_end(base: Path) -> None:
    write(base, "new/sn_menu.py", "import sn_bot")
    assert refusal(base, "import sn_menu") == ""


def test_imports_behind_relative_ones_count(base: Path) -> None:
    for name in ("__init__", "desk/__init__"):
        write(base, f"new/sn_shop/{name}.py")
    write(base, "new/sn_shop/menu.py", "import sn_prices")
    found = refusal(base, "from ..menu import x", file="sn_shop/desk/bot.py")
    assert "menu.py:1 imports 'sn_prices'" in found
    assert refusal(base, "from .. import menu", file="sn_shop/desk/bot_2.py")
    assert refusal(base, "from . import menu", file="sn_shop/desk/bot_3.py") == ""
    write(base, "new/sn_shop/__init__.py", "import sn_prices")
    same_names._imports_of.cache_clear()
    assert "__init__.py:1" in refusal(base, "from .. import nothing", file="sn_shop/desk/bot_4.py")


def test_a_package_is_compared_by_its_outermost_file(base: Path) -> None:
    for folder in ("old", "new"):
        write(base, f"{folder}/sn_shop/__init__.py")
        write(base, f"{folder}/sn_shop/prices.py")
    found = refusal(base, "import sn_shop.prices")
    assert "imports 'sn_shop'" in found
    assert found.count("__init__.py") == 2


def test_a_folder_without_a_file_is_passed_over(base: Path) -> None:
    for folder in ("old", "new"):
        write(base, f"{folder}/sn_space/prices.py")
    found = refusal(base, "from sn_space.prices import price")
    assert "imports 'sn_space.prices'" in found


def test_what_is_imported_already_decides(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sn_prices")
    monkeypatch.setitem(sys.modules, "sn_prices", module)
    assert refusal(base, "import sn_prices") == ""  # made by somebody, of no file
    module.__file__ = str(base / "new/sn_prices.py")
    assert refusal(base, "import sn_prices") == ""
    module.__file__ = str(base / "new/../new/sn_prices.py")
    assert refusal(base, "import sn_prices") == ""
    module.__file__ = str(base / "old/sn_prices.py")
    assert refusal(base, "import sn_prices")


def test_a_later_folder_must_not_hide_what_was_loaded(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(base / "old"), *sys.path])
    path = write(base, "old/sn_bot.py", "def f():\n    import sn_prices")
    claim_imports([path], [str(base / "old")])
    sys.path.insert(0, str(base / "new"))
    assert "sn_bot.py:2 imports 'sn_prices'" in refusal(base, "", file="sn_other.py")
    module = ModuleType("sn_prices")
    module.__file__ = str(base / "old/sn_prices.py")
    monkeypatch.setitem(sys.modules, "sn_prices", module)
    assert refusal(base, "", file="sn_other.py") == ""


def test_what_was_refused_claims_nothing(base: Path) -> None:
    write(base, "new/sn_menu.py")
    assert refusal(base, "import sn_prices")
    assert same_names._CLAIMS == {}
    assert refusal(base, "import sn_menu, json", file="sn_other.py") == ""
    assert [name for name, _ in same_names._CLAIMS if name != "json"] == ["sn_menu"]


def test_the_author_is_told_what_to_do() -> None:
    assert issubclass(SameNameError, ImportError)
    assert "interpreter" in SameNameError.remedy
    assert "relative import" in SameNameError.remedy


def test_a_file_is_named_from_the_working_folder(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(base / "new/sn_prices.py") in refusal(base, "import sn_prices")
    monkeypatch.chdir(base)
    found = refusal(base, "import sn_prices")
    assert str(Path("new/sn_prices.py")) in found
    assert str(base) not in found


# ── a module that is a target ────────────────────────────────────────────────────────────────────


def claimed(base: Path, name: str) -> str:
    claim_module.cache_clear()
    try:
        claim_module(name, str(base / "new"))
    except SameNameError as error:
        return str(error)
    return ""


def test_a_target_that_another_file_would_answer_for(base: Path) -> None:
    found = claimed(base, "sn_prices")
    assert "'sn_prices' refers to 'sn_prices'" in found
    assert "old" in found


def test_a_target_in_a_package_is_told_by_the_package(base: Path) -> None:
    for folder in ("old", "new"):
        write(base, f"{folder}/sn_shop/__init__.py")
        write(base, f"{folder}/sn_shop/bot.py")
    assert "'sn_shop.bot' refers to 'sn_shop'" in claimed(base, "sn_shop.bot")


def test_the_imports_of_a_target_count(base: Path) -> None:
    write(base, "new/sn_alone/__init__.py")
    write(base, "new/sn_alone/bot.py", "import sn_prices")
    assert "bot.py:1 imports 'sn_prices'" in claimed(base, "sn_alone.bot")
    write(base, "new/sn_first/__init__.py", "import sn_prices")
    write(base, "new/sn_first/bot.py")
    assert "__init__.py:1 imports 'sn_prices'" in claimed(base, "sn_first.bot")


@pytest.mark.parametrize("name", ["sn_nothing", "json", "pytest", "sn_bot"])
def test_other_targets_are_free(base: Path, name: str) -> None:
    write(base, "new/sn_bot.py")
    assert claimed(base, name) == ""
