"""Put the CRDs of all releases of a system together: each type once, whoever has it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kthena_components.core.schema.definitions import api_version, served_roots
from toolchain.crd_tables.releases import Release


@dataclass(slots=True)
class Table:
    """The table of one system, while it is made."""

    title: str
    repository: str
    filled: Mapping[str, tuple[str, ...]]
    unsigned: tuple[str, ...] = ()
    nulls: bool = False
    """Whether a null in a list is an empty string or 0. Written if it is so."""
    releases: list[dict[str, Any]] = field(default_factory=list)
    kinds: dict[str, dict[str, list[list[Any]]]] = field(default_factory=dict)
    """By kind and apiVersion: the releases with which its type changed, and what to. None: gone."""
    scaled: dict[str, dict[str, list[list[Any]]]] = field(default_factory=dict)
    """The same for whether it has the scale subresource, which autoscalers read and write."""
    types: list[dict[str, Any]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(
        self, release: Release, files: Mapping[str, str], crds: list[Mapping[str, Any]]
    ) -> None:
        """Take in the CRDs of a release that is newer than those before.

        Args:
            release: The release.
            files: The SHA-256 of each file that was read.
            crds: What stands in them.
        """
        self.releases.append({**asdict(release), "files": dict(files)})
        roots: dict[tuple[str, str], int] = {}
        scaled: dict[tuple[str, str], bool] = {}
        for crd in crds:
            roots |= served_roots(crd, self._number)
            spec = crd["spec"]
            for version in spec["versions"]:
                name = spec["names"]["kind"], api_version(spec["group"], version["name"])
                if name in roots:
                    scaled[name] = "scale" in version.get("subresources", {})
        known = {(kind, served) for kind, forms in self.kinds.items() for served in forms}
        for kind, served in sorted(known | roots.keys()):
            now = kind, served
            _note(self.kinds, now, release.version, roots.get(now))
            _note(self.scaled, now, release.version, scaled.get(now, False))

    def _number(self, made: dict[str, Any]) -> int:
        """Give the number of a type: the number of an equal one, if it was seen before."""
        text = json.dumps(made, sort_keys=True)
        if text not in self._numbers:
            self._numbers[text] = len(self.types)
            self.types.append(made)
        return self._numbers[text]

    def write(self) -> str:
        """Write the table as JSON with one release, kind and type on a line."""
        parts = [
            f' "title": {json.dumps(self.title)}',
            f' "repository": {json.dumps(self.repository)}',
            f' "filled": {json.dumps(self.filled)}',
            f' "unsigned": {json.dumps(self.unsigned)}',
            *([' "nulls": true'] if self.nulls else ()),
            _block("releases", map(json.dumps, self.releases)),
            _by_kind("kinds", self.kinds),
            _by_kind("scaled", self.scaled),
            _block("types", (json.dumps(made, separators=(",", ":")) for made in self.types)),
        ]
        return "{\n" + ",\n".join(parts) + "\n}\n"


def _note(
    forms: dict[str, dict[str, list[list[Any]]]], of: tuple[str, str], release: str, found: Any
) -> None:
    """Write down what is found of a kind and apiVersion in a release, if it has changed."""
    kind, served = of
    known = forms.setdefault(kind, {}).setdefault(served, [])
    if (known[-1][1] if known else None) != found:
        known.append([release, found])


def _by_kind(name: str, forms: Mapping[str, Any]) -> str:
    lines = (f"  {json.dumps(kind)}: {json.dumps(forms[kind])}" for kind in sorted(forms))
    return f' "{name}": {{\n' + ",\n".join(lines) + "\n }"


def _block(name: str, lines: Any) -> str:
    return f' "{name}": [\n  ' + ",\n  ".join(lines) + "\n ]"
