"""API keys and tokens by their form: every form, and nothing that merely resembles one."""

from __future__ import annotations

import pytest

from agenteval.core.secrets import is_key, mask_keys

LETTERS = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7c"
FORMS = [
    *(f"sk-{kind}{LETTERS[:16]}" for kind in ("", "proj-", "ant-", "live-", "test-", "or-")),
    *(f"{kind}_{mode}_{LETTERS[:16]}" for kind in ("sk", "rk") for mode in ("live", "test")),
    *(f"gh{kind}_{LETTERS[:20]}" for kind in "opsur"),
    *(f"xox{kind}-{LETTERS[:12]}" for kind in "abprs"),
    f"AIza{LETTERS[:30]}",
    f"glpat-{LETTERS[:16]}",
    f"hf_{LETTERS[:20]}",
    f"npm_{LETTERS[:30]}",
    f"SG.{LETTERS[:16]}.{LETTERS[:16]}",
    f"github_pat_{LETTERS[:20]}",
    "AKIAABCDEFGH12345678",
    "ASIAABCDEFGH12345678",
    f"eyJ{LETTERS[:8]}.eyJ{LETTERS[:8]}.{LETTERS[:8]}",
    f"Bearer {LETTERS[:20]}",
    f"bearer {LETTERS[:20]}",
]


@pytest.mark.parametrize("key", FORMS)
def test_a_key_is_found_and_masked(key: str) -> None:
    assert is_key(f"the key is {key}, keep it")
    assert key not in mask_keys(f"the key is {key}, keep it", "***")


@pytest.mark.parametrize("key", [key[:-1] for key in FORMS if not key.startswith(("sk-", "sk_", "rk_"))])
def test_one_character_less_is_none(key: str) -> None:
    assert not is_key(f"the key is {key}")


@pytest.mark.parametrize(
    "text",
    ["sk-your-key-goes-here-1", "ghp_exampleexampleexample1", "sk-xxxxxxxxxxxxxxxx1",
     "sk-abcdefghijklmnopqrst", "task-1234567890123456", "a Bearer of 20 letters"],
)  # fmt: skip
def test_what_only_resembles_a_key(text: str) -> None:
    assert not is_key(text)
