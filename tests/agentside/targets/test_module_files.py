"""Which module a file is: the one that an import of its name finds, once per process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agenteval.agentside.targets import same_names
from agenteval.agentside.targets.module_files import is_installed, module_of_file


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A folder of the author's that can be imported, whose modules are unknown before and after."""
    path, modules, claims = [*sys.path], {*sys.modules}, dict(same_names._CLAIMS)
    same_names._CLAIMS.clear()
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        del sys.modules[name]
    same_names._CLAIMS.clear()
    same_names._CLAIMS.update(claims)
    module_of_file.cache_clear()


def write(base: Path, name: str, source: str = "") -> str:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return str(path)


def test_a_file_is_the_module_that_an_import_finds(base: Path) -> None:
    path = write(base, "mf_bot.py", "value = []")
    module = module_of_file(path, str(base))
    assert module.__name__ == "mf_bot"
    assert sys.modules["mf_bot"] is module
    assert module_of_file(path, str(base)) is module
    module_of_file.cache_clear()
    assert module_of_file(path, str(base)) is module


def test_one_that_was_imported_is_the_same(base: Path) -> None:
    path = write(base, "mf_bot.py", "value = []")
    sys.path_importer_cache.clear()
    imported = __import__("mf_bot")
    assert module_of_file(path, str(base)) is imported


def test_its_folder_can_be_imported_from(base: Path) -> None:
    write(base, "sub/mf_helper.py", "value = 5")
    path = write(base, "sub/mf_bot.py", "from mf_helper import value")
    module = module_of_file(path, str(base))
    assert module.value == 5
    assert module.__name__ == "mf_bot"
    assert sys.path[0] == str(base / "sub")
    assert sys.path.count(str(base / "sub")) == 1


def test_two_files_of_one_name_are_two_modules(base: Path) -> None:
    old = module_of_file(write(base, "old/mf_bot.py", "value = 'old'"), str(base))
    new = module_of_file(write(base, "new/mf_bot.py", "value = 'new'"), str(base))
    assert (old.value, new.value) == ("old", "new")
    assert old.__name__ == "mf_bot"
    assert new.__name__.startswith("mf_bot_")
    assert sys.modules[new.__name__] is new
    module_of_file.cache_clear()
    assert module_of_file(str(base / "new/mf_bot.py"), str(base)) is new


def test_a_file_does_not_become_a_module_of_python(base: Path) -> None:
    path = write(base, "json.py", "value = 5")
    module = module_of_file(path, str(base))
    assert module.value == 5
    assert module.__name__ != "json"
    assert sys.modules["json"] is json


def test_a_name_that_cannot_be_imported(base: Path) -> None:
    one = module_of_file(write(base, "mf-bot.py", "value = 1"), str(base))
    assert one.value == 1
    assert one.__name__.startswith("mf-bot_")
    assert sys.modules[one.__name__] is one


def test_a_file_in_a_package_is_a_module_of_it(base: Path) -> None:
    write(base, "mf_shop/__init__.py", "name = 'shop'")
    write(base, "mf_shop/desk/__init__.py", "")
    write(base, "mf_shop/prices.py", "price = 5")
    path = write(base, "mf_shop/desk/bot.py", "from ..prices import price\nfrom .. import name")
    module = module_of_file(path, str(base))
    assert module.__name__ == "mf_shop.desk.bot"
    assert (module.price, module.name) == (5, "shop")
    assert sys.modules["mf_shop.desk.bot"] is module
    assert sys.path[-1] == str(base / "mf_shop/desk")
    package = module_of_file(str(base / "mf_shop/desk/__init__.py"), str(base))
    assert package is sys.modules["mf_shop.desk"]
    assert module_of_file(str(base / "mf_shop/__init__.py"), str(base)) is sys.modules["mf_shop"]


def test_a_package_in_another_folder(base: Path) -> None:
    write(base, "src/mf_shop/__init__.py", "name = 'shop'")
    path = write(base, "src/mf_shop/bot.py", "from mf_shop import name\nimport mf_near")
    write(base, "src/mf_shop/mf_near.py", "")
    module = module_of_file(path, str(base))
    assert (module.__name__, module.name) == ("mf_shop.bot", "shop")
    assert sys.path[0] == str(base / "src")
    assert str(base / "src/mf_shop") == sys.path[-1]


def test_two_packages_of_one_name_are_two(base: Path) -> None:
    for folder in ("old", "new"):
        write(base, f"{folder}/mf_shop/__init__.py", "")
        write(base, f"{folder}/mf_shop/price.py", f"price = '{folder}'")
        write(base, f"{folder}/mf_shop/bot.py", "from .price import price")
    old = module_of_file(str(base / "old/mf_shop/bot.py"), str(base))
    new = module_of_file(str(base / "new/mf_shop/bot.py"), str(base))
    assert (old.price, new.price) == ("old", "new")
    assert old.__name__ == "mf_shop.bot"
    assert new.__name__.startswith("mf_shop_")
    assert new.__name__.endswith(".bot")


def test_a_folder_whose_name_is_no_module_is_no_package(base: Path) -> None:
    write(base, "mf-shop/__init__.py", "")
    module = module_of_file(write(base, "mf-shop/mf_bot.py", "value = 1"), str(base))
    assert module.__name__ == "mf_bot"
    assert sys.path[0] == str(base / "mf-shop")


def test_a_module_that_fails_is_not_kept(base: Path) -> None:
    path = write(base, "mf_bot.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        module_of_file(path, str(base))
    assert "mf_bot" not in sys.modules
    write(base, "mf_bot.py", "value = 12345")
    assert module_of_file(path, str(base)).value == 12345


def test_a_module_is_known_while_it_runs(base: Path) -> None:
    source = "import sys\nfound = sys.modules[__name__].__name__\nfile = __file__"
    path = write(base, "mf_bot.py", source)
    module = module_of_file(path, str(base))
    assert (module.found, module.file) == ("mf_bot", path)


def test_what_is_no_python_file(base: Path) -> None:
    with pytest.raises(ImportError):
        module_of_file(write(base, "mf_bot.txt", "Hi"), str(base))


def test_a_module_of_another_file_is_refused(base: Path) -> None:
    write(base, "old/mf_prices.py", "")
    write(base, "new/mf_prices.py", "")
    module_of_file(write(base, "old/mf_old.py", "import mf_prices"), str(base))
    with pytest.raises(same_names.SameNameError):
        module_of_file(write(base, "new/mf_new.py", "import mf_prices"), str(base))
    assert "mf_new" not in sys.modules


def test_the_package_itself_is_looked_at_too(base: Path) -> None:
    write(base, "old/mf_prices.py", "")
    write(base, "new/mf_prices.py", "")
    module_of_file(write(base, "old/mf_old.py", "import mf_prices"), str(base))
    write(base, "new/mf_shop/__init__.py", "import mf_prices")
    with pytest.raises(same_names.SameNameError):
        module_of_file(write(base, "new/mf_shop/bot.py"), str(base))


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("/usr/lib/python3/site-packages/lib/a.py", True),
        ("/usr/lib/python3/dist-packages/lib/a.py", True),
        ("/home/me/shop/a.py", False),
        (None, False),
        ("", False),
    ],
)
def test_what_comes_from_an_installed_library(
    monkeypatch: pytest.MonkeyPatch, file: str | None, found: bool
) -> None:
    monkeypatch.setitem(sys.modules, "mf_library", SimpleNamespace(__file__=file))
    assert is_installed(SimpleNamespace(__module__="mf_library")) is found


@pytest.mark.parametrize("module", ["mf_nowhere", "", None])
def test_what_comes_from_nowhere_is_not_installed(module: str | None) -> None:
    assert is_installed(SimpleNamespace(__module__=module)) is False
    assert is_installed(5) is False
