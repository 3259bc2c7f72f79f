"""What Kubernetes accepts of a pod's host: ports, addresses, affinity, spread and tolerations.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go validateContainerPorts,
AccumulateUniqueHostPorts, validatePodHostNetworkDeps, validatePodDNSConfig, ValidateHostAliases,
validateHostUsers and ValidateSecurityContext.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go validateAffinity,
validateTopologySpreadConstraints and ValidateTolerations;
k8s.io/apimachinery pkg/apis/meta/v1/validation/validation.go ValidateLabelSelector.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.findings import Finding, count_of, suggest
from kthena_components.core.naming import is_dns_name
from kthena_components.core.schema.metadata import (
    check_address,
    check_domain,
    check_inner_path,
    check_key,
    check_label_value,
    check_labels,
    check_words,
    is_label,
    is_label_value,
    is_qualified,
    known,
    say,
)
from kthena_components.core.schema.pod_containers import check_port, is_port_name
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    pairs,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import regex

_PROTOCOLS = {"protocol": ("TCP", "UDP", "SCTP")}
_SYSCTL = regex("(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?")
_SEARCHES, _SEARCHED = 32, 2048
_HOSTS = ("hostNetwork", "hostPID", "hostIPC")
Fields = Mapping[str, Any]
_TOLERATION_WORDS = {
    "operator": ("Exists", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SETS, _EXIST = ("In", "NotIn"), ("Exists", "DoesNotExist")
_ORDER = ("Gt", "Lt")


def check_ports(item: Fields, path: str) -> Iterator[Finding]:
    """Report ports of a container that Kubernetes rejects."""
    first: dict[str, int] = {}
    for index, each in enumerate(sequence(item.get("ports"))):
        port, at = mapping(each), f"{path}.ports[{index}]"
        if "protocol" in port:
            yield from check_words(port, _PROTOCOLS, at)
        yield from check_port(port.get("containerPort"), f"{at}.containerPort")
        if "hostPort" in port:
            yield from check_port(port["hostPort"] or None, f"{at}.hostPort")
        name = known(port.get("name"))
        if not name:
            continue
        if not is_port_name(name):
            seen = f"is {display(name)}, but a port's name has at most 15 lower-case letters, "
            seen += "digits and single dashes, and at least one letter"
            yield say(f"{at}.name", seen, "write, for example, 'http'")
        elif first.setdefault(name, index) != index:
            seen = f"is {display(name)}, like ports[{first[name]}], and names must be unique"
            yield say(f"{at}.name", seen, "rename it or remove it")


def check_host(pod: Fields, path: str) -> Iterator[Finding]:
    """Report what a pod takes of its host, if Kubernetes rejects that."""
    on_host = pod.get("hostNetwork")
    taken: dict[tuple[object, ...], str] = {}
    for field in ("containers", "initContainers"):
        for index, item in enumerate(sequence(pod.get(field))):
            ports, at = sequence(mapping(item).get("ports")), f"{path}.{field}[{index}].ports"
            if field == "initContainers":
                # Those run one after the other, and Kubernetes does not compare their own ports.
                yield from _host_ports(ports, at, None, {})
            elif ports:
                yield from _host_ports(ports, at, on_host, taken)
    if pod.get("hostUsers") is False:
        for name in _HOSTS:
            if pod.get(name) is True:
                yield say(f"{path}.{name}", "is true, but hostUsers is false", "remove one")
    if pod.get("hostPID") is True and pod.get("shareProcessNamespace") is True:
        seen = "is true, but hostPID is true"
        yield say(f"{path}.shareProcessNamespace", seen, "remove one")


def _host_ports(
    ports: Sequence[Any], path: str, on_host: object, taken: dict[tuple[object, ...], str]
) -> Iterator[Finding]:
    """Report ports of the host that two containers take."""
    for index, each in enumerate(ports):
        port, at = mapping(each), f"{path}[{index}]"
        inner, outer = port.get("containerPort"), port.get("hostPort")
        if not outer and on_host is not True:
            continue
        if first_unknown(on_host, inner, outer, port.get("protocol"), port.get("hostIP")):
            continue
        if on_host is True:
            if outer and outer != inner:
                seen = f"is {display(outer)}, but with hostNetwork it must equal containerPort, "
                yield say(f"{at}.hostPort", f"{seen}{display(inner)}", "remove it")
                continue
            outer = inner  # its default
        if not outer:
            continue
        key = (known(port.get("protocol")) or "TCP", known(port.get("hostIP")) or "", str(outer))
        before = taken.setdefault(key, at)
        if before != at:
            field = "containerPort" if port.get("hostPort") is None else "hostPort"
            other = before.rpartition("spec.")[2]
            seen = f"takes port {display(outer)} of the host, like {other}"
            yield say(f"{at}.{field}", seen, "write another port, or remove it")


def check_names(pod: Fields, path: str) -> Iterator[Finding]:
    """Report how a pod finds others, if Kubernetes rejects that."""
    config, policy = pod.get("dnsConfig"), pod.get("dnsPolicy")
    servers = config if unknown_in(config) else mapping(config).get("nameservers")
    if policy == "None" and not unknown_in(servers) and not sequence(servers):
        seen = "is missing or empty, but dnsPolicy is None"
        yield say(f"{path}.dnsConfig.nameservers", seen, "add the address of a name server")
    if config is not None:
        yield from _dns(mapping(config), f"{path}.dnsConfig")
    for index, item in enumerate(sequence(pod.get("hostAliases"))):
        fields, at = mapping(item), f"{path}.hostAliases[{index}]"
        yield from check_address(fields.get("ip"), f"{at}.ip")
        for number, name in enumerate(sequence(fields.get("hostnames"))):
            yield from check_domain(name, f"{at}.hostnames[{number}]")


def _dns(config: Fields, path: str) -> Iterator[Finding]:
    """Check a DNS config: addresses, and at most so many search domains and characters."""
    for index, address in enumerate(sequence(config.get("nameservers"))):
        yield from check_address(address, f"{path}.nameservers[{index}]")
    searches = [known(each) for each in sequence(config.get("searches"))]
    size = sum(len(each) + 1 for each in searches if each is not None) - 1
    if len(searches) > _SEARCHES or size > _SEARCHED:
        seen = f"has {len(searches)} domains of {size} characters together, "
        seen += f"but may have {_SEARCHES} of {_SEARCHED}"
        yield say(f"{path}.searches", seen, "remove some")
    for index, each in enumerate(searches):
        # Underscores, and one dot at the end, are accepted here.
        if each not in {None, "."} and not is_dns_name(
            re.sub("(?<![.])_(?![.]|$)|^_|(?<=[.])_", "a", each.removesuffix(".")) if each else ""
        ):
            yield from check_domain(each or "", f"{path}.searches[{index}]")


def check_security(item: Fields, path: str, pod: Fields) -> Iterator[Finding]:
    """Report the security context of a container that Kubernetes rejects."""
    fields = mapping(item.get("securityContext"))
    if not fields:
        return
    at = f"{path}.securityContext"
    if fields.get("allowPrivilegeEscalation") is False:
        if fields.get("privileged") is True:
            seen = "is false, but privileged is true"
            yield say(f"{at}.allowPrivilegeEscalation", seen, "remove one")
        added = sequence(mapping(fields.get("capabilities")).get("add"))
        if "CAP_SYS_ADMIN" in added:
            seen = "is false, but CAP_SYS_ADMIN is added"
            yield say(f"{at}.allowPrivilegeEscalation", seen, "remove one")
    on_host = pod.get("hostUsers") is not False and not unknown_in(pod.get("hostUsers"))
    if fields.get("procMount") == "Unmasked" and on_host:
        seen = "is Unmasked, but hostUsers is not false"
        yield say(f"{at}.procMount", seen, "remove it, or write hostUsers: false")
    yield from check_profiles(fields, at)


def check_profiles(fields: Fields, path: str) -> Iterator[Finding]:
    """Report profiles of seccomp and AppArmor that Kubernetes rejects."""
    for name in ("seccompProfile", "appArmorProfile"):
        profile, at = mapping(fields.get(name)), f"{path}.{name}.localhostProfile"
        kind, file = profile.get("type"), profile.get("localhostProfile")
        if not profile or first_unknown(kind, file):
            continue
        if kind == "Localhost" and file is None:
            yield say(at, "is missing, but type is Localhost", "add the name of the profile")
        elif kind != "Localhost" and file is not None:
            yield say(at, f"is given, but type is {display(kind)}", "write type: Localhost")
        elif name == "seccompProfile":
            yield from check_inner_path(file, at)
        elif isinstance(file, str) and (file != file.strip() or not file):
            yield say(at, f"is {display(file)}, with blanks around it, or empty", "name a profile")


def check_sysctls(context: Fields, path: str) -> Iterator[Finding]:
    """Report sysctls that are not named like one, or stated twice."""
    first: dict[str, int] = {}
    for index, each in enumerate(sequence(context.get("sysctls"))):
        name, at = known(mapping(each).get("name")), f"{path}.sysctls[{index}].name"
        if name is None:
            continue
        if not _SYSCTL.fullmatch(name):
            yield say(at, f"is {display(name)}, which no sysctl has as a name", "rename it")
        elif first.setdefault(name, index) != index:
            yield say(at, f"is {display(name)}, like sysctls[{first[name]}]", "remove one")


def check_placement(
    pod: Mapping[str, Any], path: str, labels: Mapping[str, Any]
) -> Iterator[Finding]:
    """Report where a pod with these labels may run, if Kubernetes rejects that."""
    yield from check_labels(pod.get("nodeSelector"), f"{path}.nodeSelector")
    for index, item in enumerate(sequence(pod.get("tolerations"))):
        yield from _toleration(mapping(item), f"{path}.tolerations[{index}]")
    affinity = mapping(pod.get("affinity"))
    if affinity:
        yield from _affinity(affinity, f"{path}.affinity", labels)
    spread = sequence(pod.get("topologySpreadConstraints"))
    if spread:
        yield from _spread(spread, f"{path}.topologySpreadConstraints", labels)


def _toleration(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check a toleration: a key unless it tolerates all, and a value only for Equal."""
    yield from check_words(fields, _TOLERATION_WORDS, path)
    key, operator, value = (fields.get(name) for name in ("key", "operator", "value"))
    if first_unknown(key, operator, value, fields.get("effect")):
        return
    if not key and operator != "Exists":
        yield say(path, "has no key, but its operator is not Exists", "write operator: Exists")
    elif isinstance(key, str) and key and not is_qualified(key):
        yield say(f"{path}.key", f"is {display(key)}, which no taint has", "write a taint's key")
    if operator == "Exists" and value:
        seen = f"is {display(value)}, but operator Exists matches any value"
        yield say(f"{path}.value", seen, "remove it")
    elif isinstance(value, str) and not is_label_value(value):
        yield say(
            f"{path}.value", f"is {display(value)}, which no taint has", "write a taint's value"
        )
    if fields.get("tolerationSeconds") is not None and fields.get("effect") != "NoExecute":
        seen = "is given, but only a toleration of effect NoExecute ends"
        yield say(f"{path}.tolerationSeconds", seen, "write effect: NoExecute, or remove it")


def _affinity(
    affinity: Mapping[str, Any], path: str, labels: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check the terms of a pod's affinity and anti-affinity."""
    nodes, at = mapping(affinity.get("nodeAffinity")), f"{path}.nodeAffinity"
    required = nodes.get(_REQUIRED)
    if is_map(required):
        terms, where = required.get("nodeSelectorTerms"), f"{at}.{_REQUIRED}.nodeSelectorTerms"
        if isinstance(terms, list | tuple) and not terms:
            yield say(where, "is empty", "write at least one term, or remove the field above it")
        for index, term in enumerate(sequence(terms)):
            yield from _nodes(mapping(term), f"{where}[{index}]", values=True)
    for index, term in enumerate(sequence(nodes.get(_PREFERRED))):
        where = f"{at}.{_PREFERRED}[{index}].preference"
        yield from _nodes(mapping(mapping(term).get("preference")), where, values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        fields, at = mapping(affinity.get(kind)), f"{path}.{kind}"
        for index, term in enumerate(sequence(fields.get(_REQUIRED))):
            yield from _pods(mapping(term), f"{at}.{_REQUIRED}[{index}]", labels)
        for index, term in enumerate(sequence(fields.get(_PREFERRED))):
            where = f"{at}.{_PREFERRED}[{index}].podAffinityTerm"
            yield from _pods(mapping(mapping(term).get("podAffinityTerm")), where, labels)


def _nodes(term: Mapping[str, Any], path: str, *, values: bool) -> Iterator[Finding]:
    """Check a term about nodes. Kubernetes checks its values only where it is required."""
    for index, each in enumerate(sequence(term.get("matchExpressions"))):
        at = f"{path}.matchExpressions[{index}]"
        yield from _expression(mapping(each), at, (*_SETS, *_EXIST, *_ORDER), values=values)
    for index, each in enumerate(sequence(term.get("matchFields"))):
        yield from _name_of_node(mapping(each), f"{path}.matchFields[{index}]")


def _name_of_node(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check a match of a node's field: its name only, with one value."""
    key, operator, values = (fields.get(name) for name in ("key", "operator", "values"))
    if first_unknown(key, operator) or unknown_inside(values):
        return
    if key != "metadata.name":
        yield say(f"{path}.key", f"is {display(key)}, but only metadata.name can be matched",
                  "write metadata.name")  # fmt: skip
    if operator not in _SETS:
        yield say(f"{path}.operator", f"is {display(operator)}, but must be one of In, NotIn",
                  "write In")  # fmt: skip
    elif len(sequence(values)) != 1:
        has = count_of(len(sequence(values)), "value")
        yield say(f"{path}.values", f"has {has}, but must have one", "write one name")
    for index, each in enumerate(sequence(values)):
        yield from check_domain(each, f"{path}.values[{index}]")


def _expression(
    fields: Mapping[str, Any], path: str, operators: tuple[str, ...], *, values: bool = True
) -> Iterator[Finding]:
    """Check one expression of a selector: its key, operator and values."""
    yield from check_key(fields.get("key"), f"{path}.key")
    operator, stated = fields.get("operator"), fields.get("values")
    if values:
        for index, each in enumerate(sequence(stated)):
            yield from check_label_value(each, f"{path}.values[{index}]")
    if known(operator) is None or unknown_in(stated):
        return
    number = len(sequence(stated))
    if operator not in operators:
        seen = f"is {display(operator)}, but must be one of {', '.join(operators)}"
        yield say(f"{path}.operator", seen, suggest(str(operator), operators))
    elif operator in _SETS and not number:
        yield say(f"{path}.values", f"is empty, but {operator} needs values",
                  "write at least one value, or operator: Exists")  # fmt: skip
    elif operator in _EXIST and number:
        seen = f"has {count_of(number, 'value')}, but {operator} takes none"
        yield say(f"{path}.values", seen, "remove it, or write operator: In")
    elif operator in _ORDER and number != 1:
        seen = f"has {count_of(number, 'value')}, but {operator} compares with one"
        yield say(f"{path}.values", seen, "write one number")


def _pods(term: Mapping[str, Any], path: str, labels: Mapping[str, Any]) -> Iterator[Finding]:
    """Check a term of affinity to pods: selectors, namespaces, and the key of a topology."""
    for name in ("labelSelector", "namespaceSelector"):
        yield from _selector(term.get(name), f"{path}.{name}")
    yield from check_key(term.get("topologyKey") or None, f"{path}.topologyKey")
    for index, each in enumerate(sequence(term.get("namespaces"))):
        if known(each) is not None and not is_label(each):
            seen = f"is {display(each)}, which no namespace has as its name"
            yield say(f"{path}.namespaces[{index}]", seen, "write a namespace's name")
    yield from _label_keys(term, path, labels)


def _selector(selector: object, path: str) -> Iterator[Finding]:
    fields = mapping(selector)
    yield from check_labels(fields.get("matchLabels"), f"{path}.matchLabels")
    for index, each in enumerate(sequence(fields.get("matchExpressions"))):
        at = f"{path}.matchExpressions[{index}]"
        yield from _expression(mapping(each), at, (*_SETS, *_EXIST))


def _label_keys(
    fields: Mapping[str, Any], path: str, labels: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check keys of labels whose values are taken from the pod itself.

    The API server adds to the selector of a pod those that the pod has as labels.
    """
    selector = fields.get("labelSelector")
    unlike = sequence(fields.get("mismatchLabelKeys"))
    stated = mapping(selector)
    selected = [key for key, _ in pairs(stated.get("matchLabels"))]
    selected += [mapping(e).get("key") for e in sequence(stated.get("matchExpressions"))]
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = sequence(fields.get(name))
        if keys and selector is None:
            yield say(f"{path}.{name}", "is given, but there is no labelSelector",
                      f"add a labelSelector, or remove {name}")  # fmt: skip
            continue
        for index, key in enumerate(keys):
            at = f"{path}.{name}[{index}]"
            yield from check_key(key, at)
            if name != "matchLabelKeys" or known(key) is None:
                continue
            if selected.count(key) + (key in labels) > 1:
                yield say(
                    at,
                    f"is {display(key)}, which labelSelector has, too",
                    "remove it from one of the two",
                )
            elif key in unlike:
                yield say(at, f"is {display(key)}, which mismatchLabelKeys has, too", "remove one")


def _spread(items: Any, path: str, labels: Mapping[str, Any]) -> Iterator[Finding]:
    """Check spread constraints: selectors, and no pair of key and action twice."""
    first: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items):
        fields, at = mapping(item), f"{path}[{index}]"
        yield from _selector(fields.get("labelSelector"), f"{at}.labelSelector")
        yield from _label_keys(fields, at, labels)
        key, action = known(fields.get("topologyKey")), known(fields.get("whenUnsatisfiable"))
        if fields.get("minDomains") is not None and action not in {None, "DoNotSchedule"}:
            seen = f"is given, but whenUnsatisfiable is {display(action)}"
            yield say(f"{at}.minDomains", seen, "write whenUnsatisfiable: DoNotSchedule")
        if key is None or action is None:
            continue
        before = first.setdefault((key, action), index)
        if before != index:
            seen = f"has the topologyKey and whenUnsatisfiable of item {before}"
            yield say(at, f"{seen}, and each pair is stated once", "remove one")
