"""Waivers in the base of a branch. A waiver that exists only in the branch does not count."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kthena_components.cli.preview import Said, Weight

_CLAUSE = "Waived until "
_WAIVED = re.compile(r"Waived until (\d{4}-\d\d-\d\d): (.*)\. \[([a-z0-9-]+)\]$")
_SUFFIXES = {".py", ".yaml", ".yml", ".json", ".ts", ".js", ".go", ".cs", ".java", ".tf", ".toml"}
_MOST = 2**20
_PASSED_OVER = re.compile(r"(docs|tests|bench|examples)/.*", re.DOTALL)
"""Folders whose texts are examples."""


class BaseWaivers:
    """The texts of waivers in the files of a base."""

    def __init__(self, base: Path) -> None:
        """Store the folder of the base."""
        self._base = base

    def apply(self, said: Iterable[Said]) -> Iterator[Said]:
        """Make waived findings mandatory again if the base does not contain their waiver."""
        for item in said:
            # The finding may quote the clause too, but the waiver's own is the last one.
            at = item.text.rfind(_CLAUSE) if item.weight is Weight.WAIVED else -1
            stated = _WAIVED.match(item.text, at) if at >= 0 else None
            if item.weight is Weight.WAIVED and not (stated and self._has(stated)):
                yield replace(item, weight=Weight.MANDATORY)
            else:
                yield item

    def _has(self, stated: re.Match[str]) -> bool:
        """Return whether a file of the base contains the rule's name and the full waiver text."""
        text = re.escape(f"{stated[1]} {stated[2]}")
        whole = re.compile(rf"{text}\.?\s*(?:[\"',}}\]#]|$)", re.MULTILINE)
        return any(stated[3] in content and whole.search(content) for content in self._texts)

    @cached_property
    def _texts(self) -> list[str]:
        return [
            path.read_text(errors="replace")
            for path in sorted(self._base.rglob("*"))
            if path.suffix in _SUFFIXES
            and not _PASSED_OVER.fullmatch(path.relative_to(self._base).as_posix())
            and path.is_file()
            and path.stat().st_size <= _MOST
        ]
