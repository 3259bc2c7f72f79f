"""The ports, addresses and host's namespaces of pods that Kubernetes accepts.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go validateContainerPorts,
AccumulateUniqueHostPorts, validatePodHostNetworkDeps, validatePodDNSConfig, ValidateHostAliases,
validateHostUsers and ValidateSecurityContext.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.findings import Finding
from kthena_components.core.naming import is_dns_name
from kthena_components.core.schema.metadata import (
    check_address,
    check_domain,
    check_inner_path,
    check_words,
    known,
    say,
)
from kthena_components.core.schema.pod_containers import check_port, is_port_name
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_in
from kthena_components.core.values.regex import regex

_PROTOCOLS = {"protocol": ("TCP", "UDP", "SCTP")}
_SYSCTL = regex("(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?")
_SEARCHES, _SEARCHED = 32, 2048
_HOSTS = ("hostNetwork", "hostPID", "hostIPC")
Fields = Mapping[str, Any]


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
            yield say(f"{at}.name", seen, "write for example 'http'")
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
    for index, each in enumerate(ports):
        port, at = mapping(each), f"{path}[{index}]"
        inner, outer = port.get("containerPort"), port.get("hostPort")
        if not outer and on_host is not True:
            continue
        if first_unknown(on_host, inner, outer, port.get("protocol"), port.get("hostIP")):
            continue
        if on_host is True:
            if outer and outer != inner:
                seen = f"is {display(outer)}, but hostNetwork is true, and containerPort is "
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
