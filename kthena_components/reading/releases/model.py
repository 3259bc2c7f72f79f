"""How a chart or a kustomization of the repository is deployed, as another file states it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex


class OutsideError(ValueError):
    """Something is not in the repository, or is not known without a cluster.

    The text is the reason.
    """

    folder: str = ""
    """The real path of what is released, if that is known."""

    @classmethod
    @contextmanager
    def of(cls, folder: str) -> Iterator[None]:
        """Add the folder of what is released to the errors inside."""
        try:
            yield
        except cls as error:
            error.folder = error.folder or folder
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a release is stated."""

    file: str
    what: str
    """The statement, such as `Application chat`."""
    boundary: str
    """The real path of the repository."""

    @property
    def name(self) -> str:
        """The name of the release in messages."""
        return f"{self.file} ({self.what})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRelease:
    """A release of a chart with its values."""

    place: Place
    folder: str
    """The real path of the chart."""
    name: str
    namespace: str
    values: tuple[str, ...] = ()
    """Texts of values files. A later one overrides an earlier one."""
    options: tuple[str, ...] = ()
    """Options of helm that set single values after all files."""
    keeps_defaults: bool = True
    """Whether the values are added to the chart's own; False: they replace them."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a kustomization that changes the objects of the chart."""

    @property
    def key(self) -> str:
        """A text that is the same for releases of the same objects."""
        named = (self.folder, self.name, self.namespace, self.values, self.options)
        rest = (self.keeps_defaults, self.fields)
        return json.dumps([*named, *rest], sort_keys=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A kustomization that is built with further fields."""

    place: Place
    folder: str
    """The real path of the kustomization's folder."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a kustomization around it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for `${NAME}` in the objects."""
    replaces: bool = False
    """Whether variables in the objects are replaced at all."""

    @property
    def key(self) -> str:
        """A text that is the same for overlays of the same objects."""
        stated = (self.folder, self.fields, self.variables, self.replaces)
        return json.dumps(stated, sort_keys=True, default=str)

    @property
    def is_plain(self) -> bool:
        """Whether it adds nothing to the kustomization."""
        return not self.fields and not self.replaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A release that cannot be rendered here."""

    place: Place
    why: str
    folder: str = ""
    """The real path of what it releases, if that is in the repository."""


Statement = ChartRelease | Overlay | Outside


# Fields of a kustomization that a release states. Only those that name no file and no address.


_TARGET = frozenset(
    {"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"}
)
_IMAGE = frozenset({"name", "newName", "newTag", "digest"})
_WRITTEN = regex(r"(?:(?P<name>[^=]+)=)?(?P<new>[^@]*?)(?::(?P<tag>[^:/@]+))?(?:@(?P<id>.+))?")
"""An image in Argo CD's notation: `old=new:tag@digest`, each part but one optional."""


def patches_of(stated: object) -> dict[str, Any]:
    """Return the patches that are stated as text."""
    made = []
    for each in map(mapping, sequence(stated)):
        if not isinstance(each.get("patch"), str):
            raise OutsideError("it has a patch in a file, which is not read")
        kept: dict[str, Any] = {"patch": each["patch"]}
        target = mapping(each.get("target"))
        if target:
            kept["target"] = {key: str(target[key]) for key in target if key in _TARGET}
        if isinstance(each.get("options"), Mapping):
            kept["options"] = {k: v for k, v in each["options"].items() if isinstance(v, bool)}
        made.append(kept)
    return {"patches": made} if made else {}


def images_of(stated: object) -> dict[str, Any]:
    """Return the replacements of images."""
    made = []
    for each in sequence(stated):
        if isinstance(each, str):
            found = _WRITTEN.fullmatch(each)
            parts = found.groupdict() if found is not None else {}
            named = {
                "name": parts.get("name") or parts.get("new"),
                "newName": parts.get("new"),
                "newTag": parts.get("tag"),
                "digest": parts.get("id"),
            }
        else:
            named = {key: mapping(each).get(key) for key in _IMAGE}
        made.append({key: str(value) for key, value in named.items() if value})
    return {"images": made} if made else {}
