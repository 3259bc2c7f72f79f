"""Reads network interfaces and addresses of engines, and names by which pods find each other."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.placeholders import LATE_VARIABLES, NETWORK_VARIABLES
from kthena_components.core.facts.container_commands import Inputs
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    MaybeBool,
    MaybeInt,
    MaybeText,
    NotSet,
    OfController,
    Unknown,
    is_unresolved,
)

GLOO, NCCL, HOST_IP, NIXL_HOST, OWN_PORT, SGLANG_HOST_IP = NETWORK_VARIABLES
OWN_PORT_SINCE = (0, 4, 3)
"""The first release of vLLM that reads OWN_PORT: vllm/utils.py get_open_port of 0.4.2 does not."""
PORT_OPTIONS = {
    "--master-addr": ("--master-port", 29501),
    "--data-parallel-address": ("--data-parallel-rpc-port", 29550),
}
"""vLLM's options for ports, by the option for the address, and their defaults
(vllm/config/parallel.py)."""
LOOPBACK = regex(r"localhost|127(?:\.[0-9]{1,3}){3}|\[?::1\]?", re.ASCII | re.IGNORECASE)
"""Hosts that only the pod itself reaches."""
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared only


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableFacts:
    """A variable of a container, and where it is stated."""

    path: str = field(compare=False)
    value: MaybeText
    by_script: bool = False
    """Whether a script sets it, and not the env of the container."""


Variables = Mapping[str, VariableFacts]
NO_VARIABLES: Variables = MappingProxyType({})


def network_variables(
    container: Mapping[str, Any],
    given: Inputs,
    argv: Sequence[str],
    command: CommandFacts | None,
    path: str,
) -> Variables:
    """Return the variables of a container that are stated, or that may be set out of sight.

    Args:
        argv: Its command line, which may set a variable itself.
        command: What that starts.
    """
    network = {} if command is None else command.network
    names = [mapping(item).get("name") for item in sequence(container.get("env"))]
    files = dict.fromkeys(mount.contents for mount in given.files)
    line = "\n".join(argv)
    found: dict[str, VariableFacts] = {}
    for name in NETWORK_VARIABLES:
        value: MaybeText | None = given.env.get(name)
        by_script = name in line or any(each.mention(name) for each in files)
        if by_script:
            value = network.get(name, Unknown(f"the command may set {name}"))
        elif value is None:
            by = next((by for prefix, by in given.hidden if name.startswith(prefix)), None)
            value = Unknown(f"{name} may come from {by}") if by else None
        elif isinstance(value, str) and "$" in value:
            value = _referred(name, value, given.env)
        if value is not None:
            at = f"{path}.env[{names.index(name)}].value" if name in names else f"{path}.env"
            if by_script and value != given.env.get(name):
                at = f"{path}.{'args' if 'args' in container else 'command'}"
            else:
                by_script = False
            found[name] = VariableFacts(path=at, value=value, by_script=by_script)
    return MappingProxyType(found) if found else NO_VARIABLES


def _referred(name: str, value: str, env: Mapping[str, object]) -> Unknown:
    """Tell a variable that a controller sets from another one that is not followed."""
    other = value.removeprefix("$(").removesuffix(")")
    if value == f"$({other})" and other in LATE_VARIABLES and other not in env:
        return OfController(f"{LATE_VARIABLES[other]} sets {other}", other, elsewhere=False)
    return Unknown(f"{name} refers to another variable")


def variable_names(container: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the variables in a container's env."""
    names = (mapping(item).get("name") for item in sequence(container.get("env")))
    return frozenset(name for name in names if isinstance(name, str))


_OF_ENGINE = ("VLLM_", "SGLANG_", "SGL_", "NCCL_", "RAY_")


def engine_variables(container: Mapping[str, Any], given: Inputs, path: str) -> Variables:
    """Return the variables of engines and libraries that nothing else in a container mentions.

    Args:
        given: Its inputs, with the variables of ConfigMaps.
    """
    names = [name for name in given.env if name.startswith(_OF_ENGINE)]
    if not names:
        return NO_VARIABLES
    stated = [mapping(item) for item in sequence(container.get("env"))]
    places = {str(item.get("name")): number for number, item in enumerate(stated)}
    rest = {key: value for key, value in container.items() if key not in {"env", "envFrom"}}
    texts = str([rest, *(item.get("value") for item in stated)])
    found: dict[str, VariableFacts] = {}
    for name in (name for name in names if name not in texts):
        number, value = places.get(name), given.env[name]
        place = f"{path}.envFrom"
        if number is not None:
            place = f"{path}.env[{number}]{'.value' if 'value' in stated[number] else ''}"
        if isinstance(value, str) and "$(" in value:
            value = _referred(name, value.partition(":")[0], given.env)
        found[name] = VariableFacts(path=place, value=value)
    return MappingProxyType(found)


def asks_cluster(spec: Mapping[str, Any]) -> MaybeBool:
    """Return whether a pod asks the cluster's DNS server for names.

    With hostNetwork, the policy ClusterFirst, which is the default, falls back to Default: the pod
    asks the servers of its node. Source: kubernetes pkg/kubelet/network/dns/dns.go getPodDNSType.
    """
    policy, host = spec.get("dnsPolicy"), spec.get("hostNetwork")
    if is_unresolved(policy) or is_unresolved(host):
        return Unknown("the network of the pod is not known yet")
    if spec.get("dnsConfig") is not None or policy == "None":
        return True
    return policy == "ClusterFirstWithHostNet" or (host is not True and policy != "Default")


_VARIABLE = regex(r"\$(?:\((\w+)\)|\{(\w+)(%%,\*)?\}|(\w+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedPods:
    """The pods of one template, whose host names differ in a number."""

    path: str
    """Path of the template, or of the part of an object with it."""
    prefix: str
    """Their host names without the number."""
    count: MaybeInt
    start: int = 0
    """The number of the first one."""
    written: str = ""
    """How the address of the first one is written for every copy; empty if there is one copy."""

    @property
    def first(self) -> str:
        """The host name of the first one."""
        return f"{self.prefix}{self.start}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHosts:
    """The host names of the pods of one copy of an object, in the DNS of the cluster."""

    domain: str
    """The name of the Service below which they are."""
    pods: tuple[HostedPods, ...]
    missing: str = ""
    """Why the DNS has none of them, as a clause; empty if it has."""
    remedy: str = ""
    """What to do about that."""
    namespace: str = ""
    """The namespace of the pods; empty if the object states none, or it is not known."""
    late: str = ""
    """Why it has only those of ready pods, as a clause; empty if it has all."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values of variables that the controller sets in the pods of the first copy."""
    of_copy: frozenset[str] = frozenset()
    """The variables among them that differ between the copies of an engine in one object."""
    by_release: bool = False
    """Whether another release of the controller may choose other names."""

    def resolve(self, text: str) -> str:
        """Replace the controller's variables in an address, as its pods do."""
        return _VARIABLE.sub(self._value, text) if "$" in text else text

    def _value(self, found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[4]
        if name not in self.variables:
            return found[0]
        value = self.variables[name]
        return value.partition(",")[0] if found[3] else value


def states_host_name(template: object) -> bool:
    """Return whether a template may give its pods a host name, or names below a Service."""
    spec = mapping(template).get("spec")
    own = any(mapping(spec).get(key) for key in ("hostname", "subdomain", "hostAliases"))
    return own or is_unresolved(template) or is_unresolved(spec)


_OF_SERVICE = regex(
    r"\$(?:\(([A-Z0-9_]+)\)|\{([A-Z0-9_]+)\}|([A-Z0-9_]+))(?::(?:(\d{1,5})|\$\S+))?"
)
_ADDRESS = "_SERVICE_HOST"
_MEETING = ("--master-addr", "--dist-init-addr", "--data-parallel-address")


class ServiceAsked(NamedTuple):
    """A Service whose variable is the address of a first pod."""

    service: str
    variable: str
    port: int | None


def service_asked(command: CommandFacts | None) -> ServiceAsked | None:
    """Return the Service whose variable gives a pod the first pod's address; None if none does.

    Source: kubernetes pkg/kubelet/envvars/envvars.go FromServices.
    """
    if command is None or command.ray_role == "head":
        return None
    options = ((command.options.get(name), command.written.get(name, "")) for name in _MEETING)
    addresses = ((command.ray_address, command.ray_written), *options)
    # Another value may come from the env of the container.
    written = next((text for value, text in addresses if isinstance(value, NotSet)), "")
    found = _OF_SERVICE.fullmatch(written)
    name = (found[1] or found[2] or found[3]) if found else ""
    service = name.removesuffix(_ADDRESS).lower().replace("_", "-")
    if found is None or not name.endswith(_ADDRESS) or service in {"", "kubernetes"}:
        return None
    return ServiceAsked(service, name, int(found[4]) if found[4] else None)
