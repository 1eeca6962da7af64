"""Refuses a tag that is not the version of the package, or of which the changelog has no dated entry."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str, version: str, changelog: str) -> list[str]:
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and the package's version is {version}: tag v{version}")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md has no line '## [{version}] - YYYY-MM-DD'")
    return found


def main() -> int:
    text = (ROOT / "agenteval" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = problems(sys.argv[1], version[1], changelog) if version else ["no __version__ in the package"]
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
