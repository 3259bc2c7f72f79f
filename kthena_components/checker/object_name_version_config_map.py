"""The rules object-name, object-version and config-map-values about Kubernetes' own objects."""

import re
from collections.abc import Iterator
from typing import Final

from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.naming import (
    DNS_1035,
    DNS_LABEL,
    NAME_LIMIT,
    dns_name,
    is_dns_name,
    least_length,
)
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.remedies import write
from kthena_components.core.schema.language import no_name
from kthena_components.core.schema.metadata import STEM, is_label, short_name
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import count, mapping, sequence, unknown_in
from kthena_components.core.values.regex import regex

_SUBDOMAIN = "a DNS-1123 subdomain: lower-case letters, digits, '-' and '.'"
_LABEL = "a DNS-1123 label: lower-case letters, digits and '-', and no '.'"
_SERVICE = "a DNS-1035 label: lower-case letters, digits and '-', with a letter in front"
_SEGMENT = "one part of a path: without '/' and '%', and neither '.' nor '..'"
_KINDS: Final[dict[str, dict[str, str]]] = {
    _SUBDOMAIN: {
        "": "Pod ConfigMap Secret ServiceAccount PersistentVolumeClaim PersistentVolume Node "
        "ReplicationController PodTemplate ResourceQuota LimitRange Endpoints",
        "apps": "Deployment ReplicaSet DaemonSet",
        "batch": "Job CronJob",
        "autoscaling": "HorizontalPodAutoscaler",
        "networking.k8s.io": "Ingress IngressClass NetworkPolicy",
        "scheduling.k8s.io": "PriorityClass",
        "storage.k8s.io": "StorageClass",
        "coordination.k8s.io": "Lease",
        "node.k8s.io": "RuntimeClass",
        "resource.k8s.io": "ResourceClaim ResourceClaimTemplate DeviceClass",
    },
    _LABEL: {"": "Namespace", "apps": "StatefulSet"},
    _SERVICE: {"": "Service"},
    _SEGMENT: {
        "policy": "PodDisruptionBudget",
        "rbac.authorization.k8s.io": "Role ClusterRole RoleBinding ClusterRoleBinding",
    },
}
"""The kinds with each form of name, by API group."""
_FORMS: Final[dict[GroupKind, str]] = {
    (group, kind): form
    for form, groups in _KINDS.items()
    for group, kinds in groups.items()
    for kind in kinds.split()
}
_METADATA = regex(r"^metadata:[^\S\n]*(?:#[^\n]*)?\n(?:(?:[ #-][^\n]*)?(?:\n|\Z))*", re.MULTILINE)
"""The metadata of an object in block style, up to the next key of the object."""
_STATED = regex(r"""(?<![\w/.-])(?:n|generateN)ame["']?:\s*["']?([^\s"',}]+)""")
_USUAL = regex(r"[a-z][a-z0-9-]{0,50}[a-z0-9]?")
_LATE = regex(
    r"[A-Z][A-Z0-9_]+|[^A-Za-z0-9]+|(?:.*[-.])?[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:[-.].*)?|.*\{\}.*"
    r"|(?=.*[a-z])(?=.*[A-Z])(?:(?:[a-z0-9]+|[A-Z]{6,})(?:[-.]|\Z))+|(?:[a-z0-9]+_)+name"
)
"""A name in capitals, one with a part such as V_ZONE or {}, one that says what it is, for sed to
replace: service_name; or one without letters: `_`, which a kustomization's namespace replaces. A
word of capitals between parts without them is replaced, too: bench-JOBSUFFIX; abbreviations are
shorter, or have digits: llama-AWQ, llama-NVFP4."""
_JOB, _CRON_JOB = ("batch", "Job"), ("batch", "CronJob")
_CRON_JOB_NAME, _NO_LIMIT = 52, 2**20
_RANDOM = "aaaaa"
"""Five characters like those that the API server adds to a generateName."""
_TIME = len("-29432160")
"""What a CronJob adds to its name for a Job: the minutes since 1970."""


def object_name(found: Object) -> Iterator[Finding]:
    """The name of an object of Kubernetes itself has the form and the length that its kind allows.

    A Service's name is a DNS-1035 label of at most 63 characters, the name of a Namespace or
    StatefulSet a DNS-1123 label. Most others are DNS-1123 subdomains of at most 253 characters. A
    CronJob's has at most 52 characters, a Job's 63, and an indexed Job is a label that leaves room
    for the last index of its pods. Roles, their bindings and PodDisruptionBudgets may have nearly
    any name. For a StatefulSet's name of more than 52 characters, there is name-fits. A namespace,
    and in a StatefulSet serviceName and the names of volumeClaimTemplates, are DNS-1123 labels.
    In a preview, kinds without other rules, such as Services, are not checked.

    Pass: a Service chat-1; a ConfigMap chat.v1; a CronJob of 52 characters; a Role system:chat.
    Fail: a Service 1-chat or chat.v1; a StatefulSet chat.v1; a ConfigMap chat_v1; a CronJob of 53
    characters; an indexed Job of 62 characters with 10 completions; the namespace llm_serving.
    Level: mandatory. The API server rejects the object. Advisory for a Service with a digit in
    front, which newer API servers may allow (the feature gate RelaxedServiceNameValidation), and
    for a '-' or '.' at an end, which a kustomization's namePrefix or nameSuffix may complete.
    Source: KEP-5311; kubernetes v1.34 pkg/apis/core/validation, pkg/apis/apps/validation and
    pkg/apis/batch/validation; pkg/controller/cronjob/cronjob_controllerv2.go getJobName; compared
    with the API server.
    """
    form = _FORMS.get(found.group_kind)
    if form is None:
        return
    yield from _other_names(found)
    form = _LABEL if _last_index(found) else form
    for field, random in (("name", ""), ("generateName", _RANDOM)):
        name = found.metadata.get(field)
        if isinstance(name, str) and name:
            if not unknown_in(name) and _LATE.fullmatch(name) is None:
                yield from _check(found, form, field, name, random)
            return
        if isinstance(name, int | float) and found.kind != "Pod":  # pod-schema reports it
            yield no_name(name, f"metadata.{field}")
            return


_WITHOUT: Final[dict[str, tuple[str, str, str]]] = {
    "apps/v1beta1": ("1.16", "apps/v1", "Deployment StatefulSet"),
    "apps/v1beta2": ("1.16", "apps/v1", "Deployment StatefulSet DaemonSet ReplicaSet"),
    "extensions/v1beta1": ("1.16", "apps/v1", "Deployment DaemonSet ReplicaSet"),
    "networking.k8s.io/v1beta1": ("1.22", "networking.k8s.io/v1", "Ingress IngressClass"),
    "scheduling.k8s.io/v1beta1": ("1.22", "scheduling.k8s.io/v1", "PriorityClass"),
    "batch/v1beta1": ("1.25", "batch/v1", "CronJob"),
    "policy/v1beta1": ("1.25", "policy/v1", "PodDisruptionBudget"),
    "autoscaling/v2beta1": ("1.25", "autoscaling/v2", "HorizontalPodAutoscaler"),
    "autoscaling/v2beta2": ("1.26", "autoscaling/v2", "HorizontalPodAutoscaler"),
}
"""The first Kubernetes without a version of some kinds, the version that is left, and the kinds."""
_SAME_FIELDS = frozenset({"apps/v1beta2", "batch/v1beta1", "policy/v1beta1", "autoscaling/v2beta2"})
"""Versions whose fields the version that is left has, too."""


def object_version(found: Object) -> Iterator[Finding]:
    """The version of an object of Kubernetes itself is one that the API server still has.

    Pass: autoscaling/v2, policy/v1 and apps/v1.
    Fail: a HorizontalPodAutoscaler of autoscaling/v2beta2; a PodDisruptionBudget of policy/v1beta1.
    Level: mandatory. kubectl finds no such kind, whatever the objects beside it are.
    Source: Kubernetes documentation, Deprecated API Migration Guide.
    """
    stated = found.body.get("apiVersion")
    gone = _WITHOUT.get(stated) if isinstance(stated, str) else None
    if gone is not None and found.kind in gone[2].split():
        first, left, _ = gone
        seen = f"is {display(stated)}, which Kubernetes no longer serves since {first}"
        text = f"write {left}, and the fields of that version"
        remedy = write(left) if stated in _SAME_FIELDS else text
        yield Finding(path="apiVersion", seen=seen, remedy=remedy)


def config_map_values(found: Object) -> Iterator[Finding]:
    """Every value of a ConfigMap is a string: numbers, true and false are in quotes.

    Pass: MAX_MODEL_LEN "8192"; LOGGING "true"; a block after `config.yaml: |`.
    Fail: MAX_MODEL_LEN 8192; LOGGING true; config.yaml as a map.
    Level: mandatory. The API server cannot decode the object.
    Source: kubernetes v1.34 staging/src/k8s.io/api/core/v1/types.go ConfigMap.
    """
    if found.group_kind != _CONFIG_MAP:
        return
    for part in ("data", "binaryData"):
        for key, value in mapping(found.body.get(part)).items():
            if value is None or isinstance(value, str) or unknown_in(value):
                continue
            seen = f"is {display(value)}, but must be a string"
            block = f"write it as a block: {key_text(key)}: |"
            scalar = isinstance(value, bool | int | float)
            yield Finding(
                path=join_path(part, key_text(key)),
                seen=seen,
                remedy="write it in quotes" if scalar else block,
            )


_CONFIG_MAP: Final[GroupKind] = ("", "ConfigMap")
_NO_STRING = regex(
    r"""
    ^(?: data | binaryData ): (?:
        [^\S\n]* \{
        | [^\S\n]*+ (?> (?: \#[^\n]*+ )? ) \n (?> (?: [^\S\n]*+ (?: \#[^\n]*+ )? \n )* )
          (?P<deep> [ ]++ ) (?: [^\n]*+\n (?> (?: [^\S\n]*+\n )* ) (?P=deep) )*?
          ["']? [\w.-]+ ["']?: [^\S\n]* (?:
              [-+.]?[0-9][^\s:]* | true | false | yes | no | on | off | y | n | \[.* | \{.*
              | (?= \n (?P=deep) [ -] )
          ) [^\S\n]* (?: \#[^\n]* )? $
    )
    """,
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
"""The data of a ConfigMap with a value that YAML may not read as a string."""


def may_be_wrong(of: GroupKind, text: str) -> bool:
    """Return whether an object may have a wrong name or value, by the text of its file.

    Many ConfigMaps are large, and no other rule reads them: only these are parsed.
    """
    if of not in _FORMS:
        return False
    if of == _CONFIG_MAP and _NO_STRING.search(text):
        return True
    block = _METADATA.search(text)
    stated = _STATED.finditer(text, *(block.span() if block else ()))
    return any(_USUAL.fullmatch(each.group(1)) is None for each in stated)


def _other_names(found: Object) -> Iterator[Finding]:
    """Check the namespace, and the names from which a StatefulSet makes those of other objects."""
    named = [("metadata.namespace", found.metadata.get("namespace"))]
    if found.kind == "StatefulSet":
        named.append(("spec.serviceName", found.spec.get("serviceName")))
        for index, claim in enumerate(map(mapping, sequence(found.spec.get(_CLAIMS)))):
            name = mapping(claim.get("metadata")).get("name")
            named.append((f"spec.{_CLAIMS}[{index}].metadata.name", name))
    for path, name in named:
        if not isinstance(name, str) or not name or unknown_in(name):
            continue
        if not is_label(name) and _LATE.fullmatch(name) is None:
            seen = f"is {display(name)}, but must be {_LABEL}, at most {DNS_LABEL} characters"
            yield Finding(path=path, seen=seen, remedy=write(short_name(name) or "chat"))


_CLAIMS = "volumeClaimTemplates"


def _last_index(found: Object) -> str:
    """Return the suffix that an indexed Job, also one of a CronJob, gives its last pod."""
    spec = found.spec
    if found.group_kind == _CRON_JOB:
        spec = mapping(mapping(spec.get("jobTemplate")).get("spec"))
    elif found.group_kind != _JOB:
        return ""
    pods = count(spec.get("completions"))
    is_indexed = spec.get("completionMode") == "Indexed" and isinstance(pods, int) and pods > 0
    return f"-{pods - 1}" if is_indexed and isinstance(pods, int) else ""


def _check(found: Object, form: str, field: str, stated: str, random: str) -> Iterator[Finding]:
    """Report a name of the wrong form or length; `random` is what the API server appends."""
    limit, why = _limit(found, form)
    most = limit - len(random)
    name = stated[:STEM] if random else stated
    level = Level.MANDATORY
    cut = random and stated.endswith(".") and form is not _SEGMENT
    if cut or not _has_form(name + random, form):
        seen = f"is {display(stated)}, but the name of this {found.kind} must be {form}"
        if not cut and least_length(name) <= most and _may_be_completed(name, random, form):
            level = Level.ADVISORY
    elif least_length(name) > most:
        after = f" in front of {len(random)} random characters" if random else ""
        seen = f"is {display(stated)}, {len(stated)} characters; at most {most} are allowed"
        seen += f"{after}{why}"
    elif random and least_length(stated) > _longest(form):
        seen = f"has {len(stated)} characters; at most {_longest(form)} are allowed"
    else:
        return
    valid = _valid(stated, form, found.kind)
    remedy = write(valid[: most - 1].rstrip("-.") + "-" if random else valid[:most].rstrip("-."))
    yield Finding(path=f"metadata.{field}", seen=seen, remedy=remedy, level=level)


def _limit(found: Object, form: str) -> tuple[int, str]:
    """Return the maximum length of a name, and the reason if the form is not the reason."""
    last = _last_index(found)
    if found.group_kind == _CRON_JOB:
        room = DNS_LABEL - _TIME - len(last)
        if room < _CRON_JOB_NAME:
            return room, f", because the name of a pod is this name, a time and '{last}'"
        return _CRON_JOB_NAME, ", because the name of each of its Jobs is this name and a time"
    if last:
        return DNS_LABEL - len(last), f", because the last pod gets it with '{last}'"
    if found.group_kind == _JOB and not found.spec.get("manualSelector"):
        return DNS_LABEL, ", because its pods get it as a label"
    if form is _SEGMENT:
        return _NO_LIMIT, ""
    is_long = form is _SUBDOMAIN or found.kind == "StatefulSet"
    return (NAME_LIMIT if is_long else DNS_LABEL), ""


def _longest(form: str) -> int:
    """Return the maximum length of a generateName, whose end the API server may leave out."""
    if form is _SEGMENT:
        return _NO_LIMIT
    return NAME_LIMIT if form is _SUBDOMAIN else DNS_LABEL


def _has_form(name: str, form: str) -> bool:
    if form is _SEGMENT:
        return name not in {".", ".."} and not {"/", "%"} & {*name}
    if form is _SERVICE:
        return DNS_1035.fullmatch(name) is not None
    return is_dns_name(name[:NAME_LIMIT]) and (form is _SUBDOMAIN or "." not in name)


def _may_be_completed(name: str, random: str, form: str) -> bool:
    """Return whether a kustomization or a newer API server may make a name valid."""
    whole = name.lstrip("-.") + random if random else name.strip("-.")
    return _has_form(whole, _LABEL if form is _SERVICE else form)


def _valid(name: str, form: str, kind: str) -> str:
    """Turn a name into one that has the form, as similar as possible."""
    if form is _SEGMENT:
        return re.sub("[/%]", "-", name).strip(".") or "chat"
    if form is _SUBDOMAIN:
        parts = filter(None, map(dns_name, name.split(".")))
        return ".".join(parts) or "chat"
    text = dns_name(name) or "chat"
    return text if form is _LABEL or text[0].isalpha() else f"{kind.lower()}-{text}"


OF_KUBERNETES = (object_name, object_version, config_map_values)
"""The rules about objects of Kubernetes itself."""
