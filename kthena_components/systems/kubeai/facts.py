"""The facts of a KubeAI Model: each replica is one pod with one engine.

Source: substratusai/kubeai v0.21 internal/modelcontroller/engine_vllm.go.
"""

from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.single_container import MOUNTED, SHARED_MEMORY, read_single
from kthena_components.core.facts.workload import is_serving
from kthena_components.core.values.read import name_of, pairs, sequence
from kthena_components.core.values.unknown import UNKNOWN_WORD, Unknown, is_unresolved
from kthena_components.systems.kubeai.view import VLLM, Model

_PLACES = {
    "command": "spec.args",
    "resources": "spec.resourceProfile",
    "image": "spec.image",
    "": "spec",
}
_SERVER = ("python3", "-m", "vllm.entrypoints.openai.api_server")
_LOCAL = {"pvc": "/model", "s3": "/model", "gs": "/model", "oss": "/model"}
"""Schemes whose models have another name in the pod."""


def facts(view: Model) -> ServingFacts:
    """Return the facts of a Model."""
    found, pod = view.object, _pod(view)
    engine = EngineFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        pods=1,
        replicas=view.replicas,
        entry=pod,
        worker=None,
    )
    engines = (engine,) if is_serving(pod) or isinstance(view.devices, Unknown) else ()
    return ServingFacts(path=found.at("spec"), name=name_of(found.body), engines=engines)


def _pod(view: Model) -> PodFacts:
    found, fields = view.object, view.fields
    container: dict[str, Any] = {
        "name": "server",
        "command": _command(view),
        "env": [{"name": str(key), "value": item} for key, item in pairs(fields.get("env"))],
        "envFrom": fields.get("envFrom"),
        "volumeMounts": [MOUNTED],
    }
    if fields.get("image"):
        container["image"] = fields["image"]
    pod = read_single(container, _PLACES, found.at, volumes=[SHARED_MEMORY], context=found.context)
    command = pod.command if fields.get("image") else _by_any_release(pod.command)
    return replace(pod, command=command, devices=tuple(_devices(view)))


def _devices(view: Model) -> list[DeviceFacts]:
    unknown = isinstance(view.devices, Unknown)
    if view.resource is None and not unknown:
        return []
    return [
        DeviceFacts(
            path=view.object.at("spec.resourceProfile"),
            container="server",
            resource=view.resource or "accelerators",
            limit=view.devices,
            request=view.devices,
        )
    ]


def _command(view: Model) -> list[str]:
    """Return what KubeAI starts; only its name for an engine that is not read."""
    fields, model = view.fields, view.fields.get("url")
    engine, args = fields.get("engine"), fields.get("args")
    if is_unresolved(engine):
        return [UNKNOWN_WORD]
    if engine != VLLM:
        return [str(engine)]
    scheme, _, name = model.partition("://") if isinstance(model, str) else ("", "", "")
    served = UNKNOWN_WORD if is_unresolved(model) else _LOCAL.get(scheme, name.partition("?")[0])
    if is_unresolved(args):
        return [*_SERVER, f"--model={served}", UNKNOWN_WORD, UNKNOWN_WORD]
    return [*_SERVER, f"--model={served}", *(str(a) for a in sequence(args) if isinstance(a, str))]


def _by_any_release(command: CommandFacts | None) -> CommandFacts | None:
    """Return a command whose engine may be of any release: KubeAI's configuration has its image."""
    if command is None:
        return None
    doubted = (replace(p, hard=False) if p.option else p for p in command.problems)
    return replace(command, problems=tuple(doubted))
