"""Remedies that rules about engines share, and the fields that their options belong to.

A rule names an option. Where the command line has no words, as for a component, the option is a
field: `placed` finds it.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from kthena_components.core.engines.sizes import OPTIONS_BY_FIELD
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding
from kthena_components.core.remedies import (
    Change,
    Remedy,
    mapped,
    together,
    write,
)

_WORDS = (".args", ".command", ".extra_args")
"""Ends of the paths of command lines."""
_COUNTED = "gpus_per_pod"
_CONTAINER = re.compile(r"containers\[\d+\]\.resources$")
_FIELDS = frozenset({"tensor", "pipeline", "data"})
_SIZES: Mapping[str, str] = {
    option: field
    for options in OPTIONS_BY_FIELD.values()
    for field, option in options.items()
    if field in _FIELDS
}
"""The fields of `parallelism` by the options that state the same."""


def give_gpus(engine: EngineFacts, number: int, text: str) -> Remedy:
    """Give each pod of an engine a number of GPUs, if each pod has GPUs of one kind."""
    pods = [engine.entry, *([engine.worker] if engine.worker is not None else [])]
    return together(*(gpus_of_pod(pod, number) for pod in pods), text=text)


def gpus_of_pod(pod: PodFacts, number: int, text: str = "") -> Remedy:
    """Give one pod a number of GPUs. Without a fix if it is not clear which field that is."""
    if pod.gpus_path.endswith(_COUNTED):
        return write(number, text, at=pod.gpus_path)
    if len(pod.devices) != 1:
        return Remedy(text)
    return devices(pod.devices[0], number, text)


def devices(device: DeviceFacts, number: int, text: str = "") -> Remedy:
    """Write a number into the limits and the requests of the container that has a device."""
    if not _CONTAINER.search(device.path) or "/" not in device.resource:
        return Remedy(text)
    parts = (f"{device.path}.{part}.{device.resource}" for part in ("limits", "requests"))
    return together(*(write(str(number), at=path) for path in parts), text=text)


def give_pods(engine: EngineFacts, number: int, text: str) -> Remedy:
    """Give an engine a number of pods, if a field of a component states it."""
    if not engine.entry.gpus_path.endswith(_COUNTED):
        return Remedy(text)
    field = "worker_replicas"
    return write(number - 1, text, at=f"{engine.path}.{field}" if engine.path else field)


def placed(finding: Finding) -> Finding:
    """Return a finding whose fixes change fields where there is no command line."""
    if not any(change.option for fix in finding.fixes for change in fix):
        return finding
    return replace(finding, remedy=mapped(finding.remedy, lambda each: _at(each, finding.path)))


def _at(change: Change, usual: str) -> Change | None:
    path = usual if change.path is None else change.path
    if not change.option or path.endswith(_WORDS):
        return change
    holder, _, last = path.rpartition(".")
    field = _SIZES.get(change.option)
    if last == "parallelism":
        if field is not None and not change.name:
            return Change(path=f"{path}.{field}", value=change.value)
        own = holder.endswith("engine")
        return replace(change, path=f"{holder}.extra_args") if own and field is None else None
    if last == "config" and not change.name:
        value = "" if change.value is True else change.value
        return Change(path=f"{path}.{change.option.removeprefix('--')}", value=value)
    return None
