"""Starts KServe's two programs in a sandbox. They listen on every address.

Source: kserve v0.20.0 config and cmd; the files are those of the module.
"""

import base64
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from kthena_components.cluster.client import Cluster
from sandbox.cluster import Sandbox, create, listens
from sandbox.processes import SandboxError
from toolchain.programs import Program, cache_root, known_programs

NAMESPACE = "kserve"
_PORTS = {"kserve-manager": 20_443, "kserve-llmisvc": 21_443}
"""The first of three ports of each program: webhooks, metrics, and health."""
_LLM = "llminferenceservice"
_CONFIG = "inferenceservice-config"
Body = dict[str, Any]


def start(sandbox: Sandbox, purpose: str = "kserve") -> None:
    """Install KServe 0.20, or the programs of another purpose, and wait for its webhooks."""
    programs = known_programs(purpose)
    bodies = list(_bodies(programs["kserve-manager"]))
    api, authority = sandbox.api, _authority(sandbox)
    definitions = [_converted(body, authority) for body in bodies if _is(body, "Definition")]
    sandbox.define(definitions)
    create(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    create(api, (_settings(body) for body in bodies if _is(body, "ConfigMap")))
    for name, program in programs.items():
        _start(sandbox, name, program)
    create(api, (_called(body, authority) for body in bodies if _is(body, "Configuration")))
    _install(api, [body for body in bodies if "serving.kserve.io" in body["apiVersion"]])


def _start(sandbox: Sandbox, name: str, program: Program) -> None:
    """Start one program, with its own folder for the certificate."""
    folder, port = sandbox.layout.folder / name, _PORTS[name]
    serving = folder / "k8s-webhook-server" / "serving-certs"
    serving.mkdir(parents=True)
    for file, of in (("tls.crt", "server.crt"), ("tls.key", "server.key")):
        (serving / file).symlink_to(sandbox.layout.pki(of))
    environment = {
        "TMPDIR": str(folder),
        "POD_NAMESPACE": NAMESPACE,
        "KUBECONFIG": str(sandbox.layout.programs),
    }
    arguments = [
        f"--webhook-port={port}",
        f"--metrics-addr=127.0.0.1:{port + 1}",
        f"--health-probe-addr=127.0.0.1:{port + 2}",
        *(["--metrics-secure=false"] if name == "kserve-llmisvc" else []),
    ]
    sandbox.processes.start(name, program.binary(cache_root()), arguments, environment)
    sandbox.processes.wait(name, partial(listens, port))


def _bodies(program: Program) -> Iterator[Body]:
    files = sorted(program.data(cache_root()).glob("*.yaml"))
    if not files:
        raise SandboxError(f"{program.title} has no data files in the cache")
    for file in files:
        yield from filter(None, yaml.load_all(file.read_text(), yaml.CSafeLoader))


def _is(body: Body, suffix: str) -> bool:
    return str(body["kind"]).endswith(suffix)


def _settings(body: Body) -> Body:
    """Return KServe's own configuration, for a cluster without Knative and without an ingress."""
    data = {key: value for key, value in body["data"].items() if key != "_example"}
    ingress = json.loads(data["ingress"])
    ingress |= {"disableIngressCreation": True, "disableIstioVirtualHost": True}
    data["ingress"] = json.dumps(ingress)
    data["deploy"] = json.dumps({"defaultDeploymentMode": "Standard"})
    return {**body, "metadata": {"name": _CONFIG, "namespace": NAMESPACE}, "data": data}


def _authority(sandbox: Sandbox) -> str:
    return base64.b64encode(sandbox.layout.authority.read_bytes()).decode()


def _client(path: str, authority: str) -> Body:
    program = "kserve-llmisvc" if _LLM in path or path == "/convert" else "kserve-manager"
    return {"url": f"https://127.0.0.1:{_PORTS[program]}{path}", "caBundle": authority}


def _converted(body: Body, authority: str) -> Body:
    """Let llmisvc convert the versions of its kinds, as KServe's installation does."""
    if not body["metadata"]["name"].startswith(_LLM):
        return body
    webhook = {
        "clientConfig": _client("/convert", authority),
        "conversionReviewVersions": ["v1", "v1beta1"],
    }
    conversion = {"strategy": "Webhook", "webhook": webhook}
    return {**body, "spec": {**body["spec"], "conversion": conversion}}


def _called(body: Body, authority: str) -> Body:
    """Return a webhook configuration that names addresses instead of Services."""
    webhooks = [
        {
            **webhook,
            "clientConfig": _client(webhook["clientConfig"]["service"]["path"], authority),
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
        }
        for webhook in body["webhooks"]
    ]
    return {**body, "webhooks": webhooks}


def _install(api: Cluster, bodies: list[Body]) -> None:
    """Create KServe's runtime for several nodes, its storage container and its presets."""
    for body in bodies:
        spaced = not str(body["kind"]).startswith("Cluster")
        metadata = {**body["metadata"], **({"namespace": NAMESPACE} if spaced else {})}
        api.create({**body, "metadata": metadata})
