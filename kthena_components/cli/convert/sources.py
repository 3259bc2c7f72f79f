"""Reads the input of `convert`: files, or the objects of a cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from kthena_components.cli.sources import KubeObject, objects_of
from kthena_components.convert.conversion import SAME, Changes, Conversion, Converted, title_of
from kthena_components.convert.convert import convert
from kthena_components.convert.sources_and_kept import kinds_to_read, short_title
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import lone_surrogate
from kthena_components.core.values.read import mapping
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, read_text, shown_name

if TYPE_CHECKING:
    from kthena_components.cluster.client import Cluster

Body = Mapping[str, Any]


class UsageError(ValueError):
    """A wrong command line. The text is written for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The objects of one source, and the result of their conversion."""

    name: str
    """Name of a file, or of the cluster."""
    objects: tuple[KubeObject, ...]
    conversion: Conversion
    is_live: bool = False
    _exists: Callable[[Body], bool] = field(default=lambda _: False, repr=False)

    def place_of(self, body: Body, path: str = "") -> str:
        """Return where an object or a field of it stands, for messages."""
        if self.is_live:
            return self.name
        (at,) = (each for each in self.objects if each.body is body)
        for each in self.objects:  # one of several objects of a serving: KIND/NAME.PATH
            title, space = f"{short_title(each.body)}.", mapping(each.body.get("metadata"))
            same = space.get("namespace") == mapping(body.get("metadata")).get("namespace")
            if same and path.startswith(title):
                at, path = each, path.removeprefix(title)
        return f"{self.name}:{at.line_of(path) if path else at.line}"

    def existing(self, part: Converted) -> list[str]:
        """Return the titles of those objects of a result that the cluster has."""
        return [made.title for made in part.compiled.manifests if self._exists(made.body)]


def from_file(path: str, changes: Changes) -> Source:
    """Read and convert one file; nothing in it is left out unseen.

    Raises:
        UsageError: A part of it cannot be read, or is not a Kubernetes object.
    """
    text, name = read_text(path), shown_name(path)
    if isinstance(text, Unreadable):
        raise UsageError(str(text))
    found: list[KubeObject] = []
    for document in read_documents(text, path, lambda *_: True):
        if isinstance(document, Unreadable):
            raise UsageError(str(replace(document, file=name)))
        if document.body is None:
            continue
        # A placeholder is a string here: it stays in the result.
        objects = list(objects_of(replace(document, may_have_blanks=False)))
        if not objects:
            raise UsageError(f"{name}:{document.line}: is not a Kubernetes object")
        for each in objects:
            _require_unicode(each.body, f"{name}:{each.line}")
        found += objects
    conversion = convert([each.body for each in found], changes)
    return Source(name=name, objects=tuple(found), conversion=conversion)


def _require_unicode(body: Body, place: str) -> None:
    if half := lone_surrogate(body):
        message = f"{title_of(body)} contains {half}, half a character, which no cluster can store"
        raise UsageError(f"{place}: {message}: remove it, or write the whole character")


def from_cluster(cluster: "Cluster", namespace: str | None, changes: Changes) -> Source:
    """Read and convert the servings of a cluster.

    Raises:
        ClusterError: A kind cannot be read.
    """
    # Imported here because it needs the extra `cluster`.
    from kthena_components.cluster.live import exists, fetch_live  # noqa: PLC0415

    bodies = fetch_live(cluster, kinds_to_read(), namespace)
    for body in bodies:
        _require_unicode(body, cluster.server)
    found = convert(bodies, replace(changes, adopts=changes.target == SAME))
    # A cluster has many objects that are not part of a serving.
    parts = [p for p in found.parts if isinstance(p, Converted) or p.losses or p.notes]
    return Source(
        name=cluster.server,
        objects=tuple(KubeObject(body=body, line=0) for body in bodies),
        conversion=replace(found, parts=tuple(parts)),
        is_live=True,
        _exists=lambda body: exists(cluster, body),
    )


def all_servings(sources: Sequence[Source]) -> list[Converted]:
    """Return the servings of all sources in order."""
    return [serving for source in sources for serving in source.conversion.servings]
