"""The volumes and mounts of pods that Kubernetes accepts.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidateVolumes,
validateVolumeSource, ValidateVolumeMounts and ValidateVolumeDevices.
"""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from kthena_components.core.findings import Finding, Level, nearest
from kthena_components.core.schema.metadata import check_inner_path, check_label_name, known, say
from kthena_components.core.schema.pod import shape_of
from kthena_components.core.schema.pod_containers import check_resource_field
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    pairs,
    sequence,
    unknown_in,
    whole,
)
from kthena_components.core.values.regex import regex

_MODES = 0o777
_USUAL = 2
"""Fields of a mount that has a name and a path, and nothing that is checked."""
_CHECKED = frozenset(
    {"configMap", "secret", "downwardAPI", "projected", "hostPath", "nfs", "emptyDir"}
)
_INJECTED = regex(
    r"inject|^gke-gcsfuse/volumes$|^azure\.workload\.identity/use$"
    r"|^vault\.security\.banzaicloud\.io/|^admission\.datadoghq\.com/enabled$"
)
"""Annotations and labels by which a webhook adds volumes to pods: of Vault's agent, Istio, Linkerd,
AIBrix, OpenTelemetry, Fluid, GKE's Cloud Storage FUSE, Azure, Bank-Vaults and Datadog."""
_NOT_INJECTED = ("false", "disabled", "")
_BLOCKS = ("persistentVolumeClaim", "ephemeral")
_FIELDS = tuple(
    f"metadata.{name}" for name in ("name", "namespace", "uid", "labels", "annotations")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The volumes that are added to a pod template before it becomes a pod."""

    claims: Collection[str] = ()
    """Names in the volumeClaimTemplates of its object."""
    names: tuple[str, ...] = ()
    """Names that its controller adds, as patterns of fnmatch."""
    bodies: tuple[object, ...] = ()
    """The template and its object, by whose annotations and labels a webhook may add more."""

    def has(self, name: str) -> bool:
        """Return whether a volume is surely added."""
        return name in self.claims or any(fnmatchcase(name, each) for each in self.names)

    def perhaps(self) -> str:
        """Say what else may add volumes, as a clause; empty if nothing does."""
        if key := self.injector():
            return f"; it works only if the webhook that reads {key} adds it"
        return f", and its controller adds only {', '.join(self.names)}" if self.names else ""

    def injector(self) -> str:
        """Return the annotation or label that a webhook reads to add volumes; empty without one."""
        for body in self.bodies:
            metadata = mapping(mapping(body).get("metadata"))
            for key, value in (*pairs(metadata.get("annotations")), *pairs(metadata.get("labels"))):
                if _INJECTED.search(str(key)) and value not in _NOT_INJECTED:
                    return key_text(key)
        return ""


NONE_ADDED = Added()


def check_volumes(pod: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Report volumes that Kubernetes rejects, beside the limits of pod.py."""
    first: dict[str, int] = {}
    for index, item in enumerate(sequence(pod.get("volumes"))):
        at, volume = f"{path}.volumes[{index}]", mapping(item)
        name = known(volume.get("name"))
        yield from check_label_name(name, f"{at}.name", "cache")
        if name and first.setdefault(name, index) != index:
            seen = f"is {display(name)}, like volumes[{first[name]}], and names must be unique"
            yield say(f"{at}.name", seen, "rename it or remove it")
        sources = [key for key in volume if key in _sources() and volume[key] is not None]
        if len(sources) > 1:
            seen = f"has {' and '.join(sources)}, and a volume has one source"
            yield say(at, seen, "remove all but one")
        for source in sources:
            if source in _CHECKED:
                yield from _source(source, volume[source], f"{at}.{source}")


def _sources() -> Collection[str]:
    return shape_of("Volume", by_crd=False, whole=True).fields.keys() - {"name"}


def _source(kind: str, value: object, path: str) -> Iterator[Finding]:
    """Check the source of a volume."""
    fields = mapping(value)
    yield from _mode(fields.get("defaultMode"), f"{path}.defaultMode")
    if kind in {"configMap", "secret"}:
        yield from _keys(fields.get("items"), path)
    elif kind == "downwardAPI":
        yield from _files(fields.get("items"), path)
    elif kind == "projected":
        for index, each in enumerate(sequence(fields.get("sources"))):
            yield from _projection(mapping(each), f"{path}.sources[{index}]")
        yield from _paths_once(fields, path)
    elif kind == "hostPath":
        yield from check_inner_path(fields.get("path"), f"{path}.path", absolute=True)
    elif kind == "nfs":
        place = known(fields.get("path"))
        if place and not place.startswith("/"):
            yield say(f"{path}.path", f"is {display(place)}, but must be absolute",
                      f"write '/{place}'")  # fmt: skip
    elif kind == "emptyDir":
        size = parse_quantity(fields.get("sizeLimit"))
        if size is not None and size < 0:
            yield say(f"{path}.sizeLimit", f"is {fields['sizeLimit']}, but must be at least 0",
                      "write, for example, 16Gi")  # fmt: skip


def _mode(value: object, path: str) -> Iterator[Finding]:
    """Check the permissions of files, from 0 to 0777; a remedy reads the digits as octal."""
    mode = whole(value) if value is not None else None
    if not isinstance(mode, int) or 0 <= mode <= _MODES:
        return
    digits = str(mode)
    octal = int(digits, 8) if mode > 0 and set(digits) <= set("01234567") else _MODES + 1
    seen = f"is {mode}, but the permissions of files are from 0 to {_MODES}, which is 0777"
    remedy = f"write {octal}, which is {mode} as octal digits" if octal <= _MODES else "write 420"
    yield say(path, seen, remedy)


def _keys(items: object, path: str) -> Iterator[Finding]:
    for index, each in enumerate(sequence(items)):
        item, at = mapping(each), f"{path}.items[{index}]"
        yield from check_inner_path(item.get("path"), f"{at}.path", reserved=True)
        yield from _mode(item.get("mode"), f"{at}.mode")


def _files(items: object, path: str) -> Iterator[Finding]:
    """Check files of a downwardAPI volume: path, mode, and one source for each."""
    for index, each in enumerate(sequence(items)):
        item, at = mapping(each), f"{path}.items[{index}]"
        yield from check_inner_path(item.get("path"), f"{at}.path", reserved=True)
        yield from _mode(item.get("mode"), f"{at}.mode")
        asked, field = item.get("resourceFieldRef"), item.get("fieldRef")
        if first_unknown(asked, field):
            continue
        if (asked is None) == (field is None):
            has = "no source" if asked is None else "fieldRef and resourceFieldRef"
            seen = f"has {has}, but must have one of fieldRef and resourceFieldRef"
            yield say(at, seen, "write one")
        yield from check_resource_field(asked, f"{at}.resourceFieldRef", in_volume=True)
        place = known(mapping(field).get("fieldPath"))
        if place is not None and place not in _FIELDS and "[" not in place:
            seen = f"is {display(place)}, which no volume can read"
            yield say(f"{at}.fieldRef.fieldPath", seen, f"write one of {', '.join(_FIELDS)}")


def _projection(source: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check one source of a projected volume: one type, and the paths of its files."""
    stated = [key for key, value in source.items() if value is not None]
    if len(stated) > 1 and not first_unknown(*source.values()):
        seen = f"has {' and '.join(map(str, stated))}, and each source is of one type"
        yield say(path, seen, "make each its own source")
    for kind in ("configMap", "secret"):
        yield from _keys(mapping(source.get(kind)).get("items"), f"{path}.{kind}")
    yield from _files(mapping(source.get("downwardAPI")).get("items"), f"{path}.downwardAPI")
    token = mapping(source.get("serviceAccountToken")).get("path")
    yield from check_inner_path(token, f"{path}.serviceAccountToken.path", reserved=True)


def _paths_once(projected: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Report files of a projected volume that two of its sources would write."""
    first: dict[str, str] = {}
    for index, each in enumerate(sequence(projected.get("sources"))):
        for kind in ("configMap", "secret", "downwardAPI"):
            for number, item in enumerate(sequence(mapping(mapping(each).get(kind)).get("items"))):
                at = f"sources[{index}].{kind}.items[{number}]"
                place = known(mapping(item).get("path"))
                if place and first.setdefault(place, at) != at:
                    seen = f"is {display(place)}, like {first[place]}"
                    yield say(f"{path}.{at}.path", f"{seen}, and each path is written once",
                              "write another path")  # fmt: skip


def volumes_of(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the volumes of a pod by their names; None if one is not known yet."""
    items = pod.get("volumes")
    if unknown_in(items):
        return None
    listed = sequence(items)
    if any(unknown_in(item) or unknown_in(mapping(item).get("name")) for item in listed):
        return None
    named = ((mapping(item).get("name"), item) for item in listed)
    return {name: item for name, item in named if isinstance(name, str)}


def check_mounts(
    item: Mapping[str, Any], path: str, volumes: Mapping[str, Any] | None, added: Added
) -> Iterator[Finding]:
    """Report mounts of a container that Kubernetes rejects."""
    first: dict[str, int] = {}
    for index, each in enumerate(sequence(item.get("volumeMounts"))):
        mount, at = mapping(each), f"{path}.volumeMounts[{index}]"
        name = known(mount.get("name"))
        if name is not None and volumes is not None and name not in volumes:
            yield from _missing(name, f"{at}.name", volumes, added)
        place = known(mount.get("mountPath"))
        if place == "":
            yield say(f"{at}.mountPath", "is empty", "write the path to mount the volume at")
        elif place and first.setdefault(place, index) != index:
            seen = f"is {display(place)}, like volumeMounts[{first[place]}]"
            yield say(f"{at}.mountPath", f"{seen}, and each path is mounted once",
                      "write another path, or remove the mount")  # fmt: skip
        if len(mount) <= _USUAL:
            continue
        inner = [mount.get(name) for name in ("subPath", "subPathExpr")]
        if all(inner) and not first_unknown(*inner):
            yield say(at, "has subPath and subPathExpr", "remove one")
        for name in ("subPath", "subPathExpr"):
            yield from check_inner_path(mount.get(name), f"{at}.{name}")
        yield from _modes_of(mount, item, at)
    if item.get("volumeDevices") is not None:
        yield from _devices(item, path, volumes, added)


def _missing(name: str, path: str, volumes: Mapping[str, Any], added: Added) -> Iterator[Finding]:
    if added.has(name):
        return
    close, perhaps = nearest(name, sorted(volumes)), added.perhaps()
    remedy = f"write '{close}'" if close else "add the volume to the pod"
    seen = f"is {display(name)}, but the pod has no such volume{perhaps}"
    yield say(path, seen, remedy, Level.ADVISORY if perhaps else Level.MANDATORY)


def _modes_of(mount: Mapping[str, Any], item: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check how mounts below a mount are shared, and whether they are read-only as well."""
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    security = item.get("securityContext")
    privileged = security if unknown_in(security) else mapping(security).get("privileged")
    if propagation == "Bidirectional" and privileged is not True and not unknown_in(privileged):
        seen = "is Bidirectional, which only a privileged container may have"
        yield say(f"{path}.mountPropagation", seen, "write HostToContainer")
    if recursive in ("Enabled", "IfPossible") and not first_unknown(
        mount.get("readOnly"), propagation
    ):
        if mount.get("readOnly") is not True:
            seen = f"is {recursive}, but the mount is not readOnly"
            yield say(f"{path}.recursiveReadOnly", seen, "write readOnly: true, or remove it")
        if propagation not in (None, "None"):
            seen = f"is {recursive}, but mountPropagation is not None"
            yield say(f"{path}.recursiveReadOnly", seen, "remove it")


def _devices(
    item: Mapping[str, Any], path: str, volumes: Mapping[str, Any] | None, added: Added
) -> Iterator[Finding]:
    """Check the block devices of a container against the pod's volumes and its mounts."""
    mounts = [mapping(each) for each in sequence(item.get("volumeMounts"))]
    names = {each.get("name") for each in mounts if known(each.get("name"))}
    places = {each.get("mountPath") for each in mounts if known(each.get("mountPath"))}
    for index, each in enumerate(sequence(item.get("volumeDevices"))):
        device, at = mapping(each), f"{path}.volumeDevices[{index}]"
        name, place = known(device.get("name")), known(device.get("devicePath"))
        if name is not None and volumes is not None and name not in volumes:
            yield from _missing(name, f"{at}.name", volumes, added)
        volume = mapping((volumes or {}).get(name or ""))
        if volume and not any(is_map(volume.get(kind)) or unknown_in(volume.get(kind))
                              for kind in _BLOCKS):  # fmt: skip
            seen = f"is {display(name)}, whose volume is not a claim, and only those are devices"
            yield say(f"{at}.name", seen, "write it as a volumeMount")
        if name in names:
            yield say(f"{at}.name", f"is {display(name)}, like another mount or device of it",
                      "remove one")  # fmt: skip
        if place and place in places:
            yield say(f"{at}.devicePath", f"is {display(place)}, like the path of another one",
                      "write another path")  # fmt: skip
        if place and ".." in place.split("/"):
            yield say(f"{at}.devicePath", f"is {display(place)}, but must not contain '..'",
                      "write it without '..'")  # fmt: skip
        names.add(name)
        places.add(place)
