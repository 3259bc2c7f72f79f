"""Which files are pointers of Git LFS, whose content is elsewhere."""

import pytest

from kthena_components.reading.files import is_pointer

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a' * 16}\nsize 12345\n"


def test_a_whole_pointer_is_one() -> None:
    extended = POINTER.replace("oid", f"ext-0-foo sha256:{'ab' * 32}\noid", 1)
    for text in (POINTER, POINTER.strip(), POINTER.replace("\n", "\r\n"), extended):
        assert is_pointer(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{POINTER}kind: Deployment\n",
        f"{POINTER}---\nkind: Deployment\n",
        f"kind: Deployment\n{POINTER}",
        "version https://git-lfs.github.com/spec/v1: x\nkind: Deployment\n",
    ],
)
def test_what_may_hold_an_object_is_none(text: str) -> None:
    assert not is_pointer(text.encode())
