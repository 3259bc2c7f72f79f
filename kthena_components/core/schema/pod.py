"""The schema of a pod template, as in Kubernetes, with its limits of numbers and words.

pod_fields.json lists every field with its type, the required ones, and the keys of lists, as an API
server of Kubernetes 1.34 publishes them in its OpenAPI document; a conformance test compares the
table with it. The document states neither the limits here nor the fields that the API server
requires all the same.

Source of the limits: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidatePodSpec.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from kthena_components.core.findings import Finding, Level, with_same_end
from kthena_components.core.remedies import remove
from kthena_components.core.schema.fast_check import check_quickly
from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
    check_shape,
)
from kthena_components.core.schema.metadata import RULE
from kthena_components.core.values.regex import regex

TABLE = Path(__file__).parent / "pod_fields.json"
ROOT_TYPE = "PodTemplateSpec"
_LEAST_SIMILARITY = 0.9
"""Similarity of two names, from 0 to 1, from which one counts as the other misspelled."""
_WRITE = regex(r"write '([^']+)'")
_NO_FIELD = "is not a field of a pod in Kubernetes 1.34"
_SCALARS: Mapping[str, Schema] = {
    "boolean": Switch(),
    "int-or-string": Budget(),
    "int32": Whole(),
    "int64": Whole(bits=64),
    "object": Free(),
    "string": Text(),
}


@cache
def shape_of(
    kind: str = ROOT_TYPE, *, by_crd: bool = True, whole: bool = False, patch: bool = False
) -> Fields:
    """Return the shape of a type in the table.

    Args:
        whole: Whether fields that are not in the table are reported. A CRD has its own fields.
        by_crd: Whether a CRD validates: it rejects duplicates in lists with keys, and fractional
            amounts. Kubernetes' own kinds accept both.
        patch: Whether the value is merged into another one, so that it may lack required fields.
    """
    stated = _table()[kind]
    keys = stated["keys"] if by_crd else {}
    how = {"by_crd": by_crd, "whole": whole, "patch": patch}
    fields: dict[str, Schema] = {
        name: _shape(written, how, tuple(keys.get(name, ())))
        for name, written in stated["fields"].items()
    }
    required = () if patch else tuple(stated["required"])
    return Fields(fields=fields, required=required, partial=not whole)


def unknown_field(finding: Finding, rule: str) -> Finding:
    """Word a finding about a field that is not in the table.

    One that is nearly spelt like a known field is a mistake. Any other may be of a newer
    Kubernetes: schedulingGroup is, and resembles schedulingGates.
    """
    written = finding.path.rpartition(".")[2]
    meant = _WRITE.match(finding.remedy)
    if meant is not None and _is_misspelt(written, meant[1]):
        return replace(finding, rule=rule, seen=_NO_FIELD)
    remedy = remove("remove it, unless the cluster runs a newer Kubernetes that knows it")
    return replace(finding, rule=rule, seen=_NO_FIELD, remedy=remedy, level=Level.ADVISORY)


def _is_misspelt(written: str, meant: str) -> bool:
    one, other = (word.replace("_", "").replace("-", "").casefold() for word in (written, meant))
    return SequenceMatcher(None, one, other).ratio() >= _LEAST_SIMILARITY or bool(
        with_same_end(one, [other])
    )


def _shape(written: str, how: Mapping[str, bool], keys: tuple[str, ...] = ()) -> Schema:
    """Read a type: `string`, `int32`, `Probe`, `[]EnvVar`, `[set]int32`, `{}quantity`."""
    by_crd = how["by_crd"]
    if written.startswith("[set]"):
        return Items(of=_shape(written[5:], how), is_set=by_crd, nulls=not by_crd)
    if written.startswith("[]"):
        of = _shape(written[2:], how)
        return Items(of=of, keys=keys, nulls=not by_crd and isinstance(of, Text | Whole))
    if written.startswith("{}"):
        return Table(_shape(written[2:], how))
    scalar = Amount(fractions=not by_crd) if written == "quantity" else _SCALARS.get(written)
    return shape_of(written, **how) if scalar is None else scalar


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text())
    return found


_MOST = 2**31 - 1
_ID = Whole(bits=64, least=0, most=_MOST)
_WEIGHT = Whole(least=1, most=100)
_STATED = Text(shortest=1)
_TOKEN = Whole(bits=64, least=600, most=2**32)


def _some(**fields: Schema) -> Fields:
    """Return the shape of a map with these fields; other fields are not checked."""
    return Fields(fields=fields, partial=True)


def _with_required_name(name: str = "name", **fields: Schema) -> Fields:
    """Return the same, with a required name: OpenAPI calls it optional."""
    return Fields(fields={name: _STATED, **fields}, required=(name,), partial=True)


def _one_of(*words: str) -> Text:
    return Text(one_of=words)


_PROFILE = _some(type=_one_of("RuntimeDefault", "Localhost", "Unconfined"))
_SECURITY: dict[str, Schema] = {
    "runAsUser": _ID,
    "runAsGroup": _ID,
    "seccompProfile": _PROFILE,
    "appArmorProfile": _PROFILE,
}
_KEY = _with_required_name(key=_STATED)
_CONTAINER = _some(
    securityContext=_some(**_SECURITY, procMount=_one_of("Default", "Unmasked")),
    resizePolicy=Items(
        of=_some(
            resourceName=_one_of("cpu", "memory"),
            restartPolicy=_one_of("NotRequired", "RestartContainer"),
        )
    ),
    env=Items(of=_some(valueFrom=_some(configMapKeyRef=_KEY, secretKeyRef=_KEY))),
    envFrom=Items(of=_some(configMapRef=_with_required_name(), secretRef=_with_required_name())),
    volumeMounts=Items(
        of=_some(
            mountPropagation=_one_of("None", "HostToContainer", "Bidirectional"),
            recursiveReadOnly=_one_of("Disabled", "IfPossible", "Enabled"),
        )
    ),
    volumeDevices=Items(of=_some(devicePath=_STATED)),
)
_FILES = Items(of=_some(key=_STATED, path=_STATED))
_OF_THE_POD = _some(items=Items(of=_some(path=_STATED)))
_HOST_TYPES = (
    "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice",
    "",
)  # fmt: skip
_VOLUME = _some(
    hostPath=_some(path=_STATED, type=_one_of(*_HOST_TYPES)),
    configMap=_with_required_name(items=_FILES),
    secret=_with_required_name("secretName", items=_FILES),
    persistentVolumeClaim=_some(claimName=_STATED),
    nfs=_some(server=_STATED, path=_STATED),
    csi=_some(driver=_STATED),
    flexVolume=_some(driver=_STATED),
    iscsi=_some(targetPortal=_STATED, iqn=_STATED),
    glusterfs=_some(endpoints=_STATED, path=_STATED),
    azureFile=_some(secretName=_STATED, shareName=_STATED),
    downwardAPI=_OF_THE_POD,
    projected=_some(
        sources=Items(
            of=_some(
                configMap=_with_required_name(items=_FILES),
                secret=_with_required_name(items=_FILES),
                downwardAPI=_OF_THE_POD,
                serviceAccountToken=_some(path=_STATED, expirationSeconds=_TOKEN),
            )
        )
    ),
)
_SPREAD = _some(
    maxSkew=Whole(least=1),
    minDomains=Whole(least=1),
    topologyKey=_STATED,
    whenUnsatisfiable=_one_of("DoNotSchedule", "ScheduleAnyway"),
    nodeAffinityPolicy=_one_of("Honor", "Ignore"),
    nodeTaintsPolicy=_one_of("Honor", "Ignore"),
)
_TERM = _some(topologyKey=_STATED)
_AMONG_PODS = _some(
    requiredDuringSchedulingIgnoredDuringExecution=Items(of=_TERM),
    preferredDuringSchedulingIgnoredDuringExecution=Items(
        of=_some(weight=_WEIGHT, podAffinityTerm=_TERM)
    ),
)
_NODES = _some(
    requiredDuringSchedulingIgnoredDuringExecution=_some(nodeSelectorTerms=Items(of=_some())),
    preferredDuringSchedulingIgnoredDuringExecution=Items(of=_some(weight=_WEIGHT)),
)
_POD = _some(
    activeDeadlineSeconds=Whole(bits=64, least=1, most=_MOST),
    affinity=_some(nodeAffinity=_NODES, podAffinity=_AMONG_PODS, podAntiAffinity=_AMONG_PODS),
    containers=Items(of=_CONTAINER),
    initContainers=Items(of=_CONTAINER),
    dnsConfig=_some(nameservers=Items(of=Text(), most=3), options=Items(of=_with_required_name())),
    os=_some(name=_one_of("linux", "windows")),
    securityContext=_some(
        **_SECURITY,
        fsGroup=_ID,
        supplementalGroups=Items(of=_ID),
        fsGroupChangePolicy=_one_of("OnRootMismatch", "Always"),
        supplementalGroupsPolicy=_one_of("Merge", "Strict"),
    ),
    topologySpreadConstraints=Items(of=_SPREAD),
    volumes=Items(of=_VOLUME),
)


def check_limits(pod: object, path: str) -> Iterator[Finding]:
    """Report numbers and words in a pod that Kubernetes rejects; types are left to pod.py."""
    types: set[str] | None = None
    for finding in check_quickly(pod, _POD, path):
        if finding.level is Level.UNKNOWN:
            continue
        if types is None:
            types = {each.path for each in check_shape(pod, _types(_POD), path)}
        if finding.path not in types:
            yield replace(finding, rule=RULE)


@cache
def _types(schema: Schema) -> Schema:
    """Return the same shape without its limits."""
    match schema:
        case Fields():
            fields = {name: _types(each) for name, each in schema.fields.items()}
            return Fields(fields=fields, partial=True)
        case Items():
            return Items(of=_types(schema.of))
        case Text():
            return Text()
        case Whole():
            return Whole(bits=schema.bits)
        case _:
            return schema
