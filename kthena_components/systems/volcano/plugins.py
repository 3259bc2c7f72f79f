"""The plugins of a Volcano Job: their arguments, the variables that they set, the pods' names.

Source: Volcano v1.14 pkg/controllers/job/plugins; pkg/webhooks/admission/jobs/mutate/mutate_job.go
patchDefaultPlugins, which adds svc to the plugins that need it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.read import (
    inside,
    is_name,
    mapping,
    sequence,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import Unknown, total
from kthena_components.systems.volcano.view import Task, tasks_of

INDEX = ("VC_TASK_INDEX", "VK_TASK_INDEX")
_WITH_SVC = frozenset({"svc", "mpi", "pytorch", "ray", "tensorflow"})
_PUBLISHING = "publish-not-ready-addresses"
_ANY = ("VC_", "VK_", "MASTER_", "RANK", "WORLD_SIZE", "MPI_", "TF_")
"""Beginnings of all variables that plugins set."""
_PORT, _SWITCH = "23456", "true"
_COUNTED = Unknown("Volcano's plugin pytorch counts it from pod to pod")
PYTORCH = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


def arguments(stated: object) -> Mapping[str, str]:
    """Return the arguments of a plugin by name, as Go's package flag reads them."""
    words = [word for word in map(text, sequence(stated)) if isinstance(word, str)]
    found, index = dict[str, str](), 0
    while index < len(words) and words[index].startswith("-") and words[index].strip("-"):
        name, given, value = words[index].lstrip("-").partition("=")
        follows = words[index + 1] if index + 1 < len(words) else ""
        # A switch has no value of its own.
        takes = not given and bool(follows) and not follows.startswith("-")
        found[name] = value if given else follows if takes else _SWITCH
        index += 2 if takes else 1
    return found


def task_names(found: Object) -> list[str]:
    """Return the names of the tasks: Volcano's webhook numbers those without one."""
    named = enumerate(task.fields.get("name") for task in tasks_of(found))
    return [name if is_name(name) else f"default{index}" for index, name in named]


def _plugins_of(found: Object) -> Mapping[str, object] | None:
    """Return the plugins; None if they are not known."""
    plugins, names = found.spec.get("plugins"), [t.fields.get("name") for t in tasks_of(found)]
    hidden = unknown_inside(plugins) or unknown_in(found.spec.get("tasks"))
    return None if hidden or any(map(unknown_in, names)) else mapping(plugins)


def has_hosts(plugins: Mapping[str, object]) -> bool:
    """Return whether the pods have names, and a Service for them."""
    return not _WITH_SVC.isdisjoint(plugins)


def injects_hosts(plugins: Mapping[str, object]) -> bool:
    """Return whether the pods have variables with the names and the numbers of all."""
    switch = arguments(plugins.get("svc")).get("inject-hosts-env", "true")
    return has_hosts(plugins) and switch.lower() not in {"false", "f", "0"}


def variables(found: Object) -> tuple[str, ...]:
    """Return the variables that the plugins set, or beginnings of them if that is not known."""
    plugins = _plugins_of(found)
    return _ANY if plugins is None else tuple(_variables(plugins, task_names(found)))


def _variables(plugins: Mapping[str, object], names: list[str]) -> Iterator[str]:
    """List the variables that a Job's plugins set in each pod."""
    if "env" in plugins:
        yield from INDEX
    if injects_hosts(plugins):
        for name in names:
            yield from (f"{_key(name)}_HOSTS", f"{_key(name)}_NUM")
    if "pytorch" in plugins and arguments(plugins["pytorch"]).get("master", "master") in names:
        yield from PYTORCH
    if "tensorflow" in plugins:
        yield "TF_CONFIG"
    if "mpi" in plugins:
        yield "MPI_HOST"


class PytorchPlugin(NamedTuple):
    """The tasks of the plugin pytorch, and its port."""

    master: str
    worker: str
    port: str

    @classmethod
    def read(cls, found: Object) -> "PytorchPlugin | None":
        """Read the plugin; None if the Job does not have it, or its arguments are not known."""
        plugins = _plugins_of(found)
        if plugins is None or "pytorch" not in plugins:
            return None
        given = arguments(plugins["pytorch"])
        master, worker = given.get("master", "master"), given.get("worker", "worker")
        if master not in task_names(found):
            return None
        port = given.get("port", _SWITCH)  # without a value, Go's package flag keeps the default
        port = _PORT if port == _SWITCH else port
        return cls(master, worker, port) if port.isdecimal() else None


def pytorch_variables(found: Object) -> Mapping[str, str]:
    """Return the variables that the plugin pytorch appends in all pods alike: all but RANK."""
    plugin = PytorchPlugin.read(found)
    if plugin is None:
        return {}
    named = dict(zip(task_names(found), tasks_of(found), strict=True))
    ours = {plugin.master, plugin.worker} & named.keys()
    size = total([copies_in(named[name].fields.get("replicas"), 1) for name in ours])
    address = _master(found, plugin, named[plugin.master])
    return {
        **({"MASTER_ADDR": address} if address else {}),
        "MASTER_PORT": plugin.port,
        **({"WORLD_SIZE": str(size)} if isinstance(size, int) else {}),
    }


def pytorch_ranks(found: Object) -> Mapping[str, str | Unknown]:
    """Return the RANK that the plugin pytorch appends in the pods of each of its tasks.

    It replaces one that the template states: of two variables with one name, the last counts.
    """
    plugin = PytorchPlugin.read(found)
    # In one task with both names, all pods count as workers.
    return {} if plugin is None else {plugin.master: "0", plugin.worker: _COUNTED}


def _master(found: Object, plugin: PytorchPlugin, task: Task) -> str:
    """Return the address of the master task's first pod; empty if it is not known."""
    spec = mapping(inside(task.template, "spec"))
    host = spec.get("hostname") or f"{found.name}-{plugin.master}-0"
    domain = spec.get("subdomain") or found.name
    late = unknown_in(task.template) or unknown_in(inside(task.template, "spec"))
    known = not late and is_name(found.name) and is_name(host) and is_name(domain)
    return f"{host}.{domain}" if known else ""


def _key(task: str) -> str:
    return f"VC_{task.replace('-', '_').upper()}"


def hosts(found: Object) -> PodHosts | None:
    """Return the names of the pods; None if a template states its own, or they are not known."""
    plugins, tasks = _plugins_of(found), tasks_of(found)
    if plugins is None or not is_name(found.name) or any(map(_has_own, tasks)):
        return None
    job, names = str(found.name), task_names(found)
    pods = tuple(
        HostedPods(
            path=found.at(f"{task.path}.template"),
            prefix=f"{job}-{name}-",
            count=copies_in(task.fields.get("replicas"), 1),
        )
        for task, name in zip(tasks, names, strict=True)
    )
    published = arguments(plugins.get("svc")).get(_PUBLISHING, "false").lower()
    missing = "" if has_hosts(plugins) else "the Job has no plugin svc"
    return PodHosts(
        domain=job,
        pods=pods,
        missing=missing,
        remedy="add svc: [] to spec.plugins"
        if missing
        else f"add --{_PUBLISHING} to the plugin svc",
        late="" if published in {"true", "t", "1"} else "the plugin svc names ready pods only",
        variables=dict(_lists(job, pods, names)) if injects_hosts(plugins) else {},
        namespace=found.stated_namespace,
    )


def _lists(job: str, pods: tuple[HostedPods, ...], names: list[str]) -> Iterator[tuple[str, str]]:
    """Return the variables with the names of a task's pods; a long list is cut."""
    for each, name in zip(pods, names, strict=True):
        if isinstance(each.count, int) and each.count:
            numbers = range(min(each.count, 9))
            yield f"{_key(name)}_HOSTS", ",".join(f"{each.prefix}{n}.{job}" for n in numbers)


def _has_own(task: Task) -> bool:
    spec = mapping(mapping(task.template).get("spec"))
    hidden = unknown_in(task.template) or unknown_in(mapping(task.template).get("spec"))
    return bool(hidden) or bool(spec.get("hostname") or spec.get("subdomain"))
