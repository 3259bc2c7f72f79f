"""Reads a container's files from ConfigMaps, and whether a volume may have a model."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.engines import Files, Mount
from kthena_components.core.engines.files import Contents
from kthena_components.core.facts.container import Volumes
from kthena_components.core.facts.context import ConfigMap, Context
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.read import mapping, sequence, unknown_within
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown, is_unresolved

_MOST = 100
"""Maximum number of ConfigMap mounts read per container."""
_OTHER = "another source"
HUB_NAME = regex(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
"""The name of a model in a hub."""
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""The first that is not empty decides whether anything is downloaded: huggingface_hub/constants.py
of 0.34 and 1.2, which vLLM's downloads from ModelScope obey, too."""
_ON = frozenset({"1", "ON", "TRUE", "YES"})
_OTHER_HUB = "SGLANG_USE_MODELSCOPE"
_BRINGS = regex(r"(?i)download|snapshot|\bhf\b|\bcp\b|curl|wget|aws|gsutil|rclone|OFFLINE|\$\(cat")
"""Words of a script that may bring a model or set these variables."""
_VOLATILE = frozenset({"emptyDir", "configMap", "secret", "downwardAPI", "projected"})
"""Sources of volumes that are empty, or hold no weights, in a new pod."""
_NO_WEIGHTS = regex(r"/(?:dev|etc|proc|run|sys|usr|var/run|var/log)(?:/|$)")
"""Paths of mounts for devices, drivers and logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingKey:
    """A key that a container uses and that a known ConfigMap does not have.

    Or a ConfigMap that is missing, if another one has a similar name.
    """

    path: str = field(compare=False)
    because: str
    meant: str = ""
    """The name of the ConfigMap that is probably meant; empty for a key."""


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a ConfigMap volume, mounted at the path "" for now."""

    whole: Mount
    missing: tuple[str, ...]
    """Messages about missing keys."""
    meant: str = ""
    """The name of a ConfigMap that its misspelled one probably means."""


@dataclass(slots=True)
class PodVolumes:
    """The volumes of one pod, each read once for all containers."""

    volumes: Volumes
    context: Context
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The spec of the pod, with its resource claims."""
    metadata: object = None
    """The metadata of its template."""
    _contents: dict[str, _Content | None] = field(default_factory=dict)

    def content(self, name: str) -> _Content | None:
        """Return the content of a volume; None for one that is not made of ConfigMaps."""
        if name not in self._contents:
            volume = self.volumes.named.get(name, {})
            of_maps = "configMap" in volume or "projected" in volume
            self._contents[name] = _content(volume, self.context) if of_maps else None
        return self._contents[name]


def why_missing(found: ConfigMap, key: str) -> str:
    """Explain that a key is missing."""
    unknown = found.text(key)
    return unknown.because if isinstance(unknown, Unknown) else ""


def read_files(
    container: Mapping[str, Any], pod: PodVolumes, path: str
) -> tuple[Files, list[MissingKey]]:
    """Read the mounted files of a container, and the missing keys."""
    found: list[Mount] = []
    missing: list[MissingKey] = []
    seen: set[str] = set()
    for index, mount in enumerate(map(mapping, sequence(container.get("volumeMounts")))):
        name, at = mount.get("name"), mount.get("mountPath")
        content = pod.content(name) if isinstance(name, str) else None
        if (
            content is None
            or not isinstance(at, str)
            or is_unresolved(at)
            or not at.startswith("/")
        ):
            continue
        where = f"{path}.volumeMounts[{index}]"
        if name not in seen:
            missing += (
                MissingKey(path=where, because=because, meant=content.meant)
                for because in content.missing
            )
            seen.add(str(name))
        part = _part(content.whole, mount, posixpath.normpath(at))
        if not part.files and part.gap is None and mount.get("subPath"):
            because = f"{part.source} has no key that becomes '{_below(mount['subPath'])[:63]}'"
            missing.append(MissingKey(path=f"{where}.subPath", because=because))
        if len(found) == _MOST:
            gap = Unknown(f"more than {_MOST} ConfigMaps are mounted in its container")
            found.append(Mount("", gap=gap))
            break
        found.append(part)
    return tuple(found), missing


def _part(whole: Mount, mount: Mapping[str, Any], at: str) -> Mount:
    """Return the part of a volume that a mount shows: all of it, or its subPath."""
    inside = mount.get("subPath")
    expression = mount.get("subPathExpr")
    if is_unresolved(inside) or (inside is not None and not isinstance(inside, str)) or expression:
        gap = Unknown("the path inside its volume is not known")
        return Mount(at, gap=gap, source=whole.source)
    if not inside:
        return Mount(at, whole.files, whole.gap, whole.source)
    below = _below(inside)
    files = Contents(
        (name[len(below) :].lstrip("/"), text)
        for name, text in whole.files
        if name == below or name.startswith(f"{below}/")
    )
    return Mount(at, files, whole.gap, whole.source)


def _below(inside: str) -> str:
    return posixpath.normpath(inside).lstrip("/")


def _content(volume: Mapping[str, Any], context: Context) -> _Content:
    """Read the files of a volume: a ConfigMap, or several of them in a projected volume."""
    if "configMap" in volume:
        sources: list[Any] = [volume["configMap"]]
    else:
        projected = volume["projected"]
        listed = mapping(projected).get("sources")
        sources = list(sequence(listed)) if not is_unresolved(listed) else [projected]
        sources = [mapping(source).get("configMap", _OTHER) for source in sources]
    parts = [_source(source, context) for source in sources]
    files = dict(file for part in parts for file in part.whole.files)
    gap = next((part.whole.gap for part in parts if part.whole.gap), None)
    source = " and ".join(dict.fromkeys(part.whole.source for part in parts if part.whole.source))
    missing = tuple(because for part in parts for because in part.missing)
    meant = next((part.meant for part in parts if part.meant), "")
    return _Content(Mount("", Contents(files.items()), gap, source), missing, meant)


def _source(source: Any, context: Context) -> _Content:
    """Return the files of one ConfigMap: one per key, or those that `items` lists."""
    if source is _OTHER or not isinstance(source, Mapping):
        return _unknown(Unknown("it may come from a source that is not read"))
    # A ConfigMap volume and a reference name it in the same field.
    found = context.find(source)
    if isinstance(found, Unknown):
        meant = context.slip_of(source)
        because = (f"{found.because}, but '{meant}' is",) if meant else ()
        return replace(_unknown(found), missing=because, meant=meant or "")
    listed = source.get("items")
    if is_unresolved(listed):
        return _unknown(Unknown("the items of its volume are not known yet"))
    if not sequence(listed):
        keys = [key for key in (*found.data, *found.binary) if isinstance(key, str)]
        files = tuple((key, found.text(key)) for key in keys)
        return _Content(Mount("", files, found.gap, found.title), ())
    chosen = tuple(_items(source))
    sure = source.get("optional") is not True
    missing = [why_missing(found, key) for key, _ in chosen if sure and not found.has(key)]
    files = tuple((at, found.text(key)) for key, at in chosen)
    late = None if unknown_within(listed) is None else Unknown("an item is not known yet")
    return _Content(Mount("", files, late, found.title), tuple(missing))


def _unknown(gap: Unknown) -> _Content:
    return _Content(Mount("", gap=gap), ())


def _items(source: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return key and path of each item of a volume."""
    for item in map(mapping, sequence(source.get("items"))):
        key, at = item.get("key"), item.get("path")
        if (
            isinstance(key, str)
            and isinstance(at, str)
            and not (is_unresolved(key) or is_unresolved(at))
        ):
            yield key, posixpath.normpath(at)


# Whether a container finds a model without a download.


def may_hold_model(
    container: Mapping[str, Any], spec: Mapping[str, Any], *, beside: bool = False
) -> bool:
    """Return whether a volume may hold weights, or an init container may bring them.

    Args:
        beside: Whether the containers beside it may bring them, too.
    """
    mounts, volumes = container.get("volumeMounts"), spec.get("volumes")
    held = spec.get("initContainers")
    others = [each for each in map(mapping, sequence(spec.get("containers"))) if beside]
    makers = (*map(mapping, sequence(held)), *(each for each in others if each is not container))
    brought = [
        mapping(mount).get("name")
        for each in makers
        for mount in sequence(each.get("volumeMounts"))
    ]
    listed = [*sequence(mounts), *sequence(volumes)]
    fields = (value for item in listed for value in (item, *mapping(item).values()))
    if any(map(is_unresolved, (mounts, volumes, *fields))) or unknown_within(held):
        return True
    sources = {str(v.get("name")): v for v in map(mapping, sequence(volumes))}
    return any(
        not _NO_WEIGHTS.match(str(mount.get("mountPath")))
        and (mount.get("name") in brought or _outlives(sources.get(str(mount.get("name")))))
        for mount in map(mapping, sequence(mounts))
    ) or bool(sequence(container.get("volumeDevices")))


def _outlives(volume: Mapping[str, Any] | None) -> bool:
    """Return whether a volume outlives a pod; one that a claim template makes does."""
    return volume is None or not _VOLATILE & volume.keys()


def offline(
    container: Mapping[str, Any], spec: Mapping[str, Any], env: Mapping[str, MaybeText]
) -> str:
    """Return the variable that forbids the download of a model which nothing else brings.

    Args:
        env: Its variables.
    """
    name = next((each for each in OFFLINE if env.get(each)), "")
    value = env.get(name)
    if not isinstance(value, str) or value.upper() not in _ON or _OTHER_HUB in env:
        return ""
    words = str([container.get(key) for key in ("command", "args")])
    hooks = container.get("lifecycle") is not None
    brings = hooks or _BRINGS.search(words) is not None or spec.get("initContainers")
    return "" if brings or may_hold_model(container, spec, beside=True) else name
