"""Starts MatrixInfer's controller and webhook in a sandbox. They listen on every address.

MatrixInfer has no release and no module that can be pinned, so this repository builds neither. Its
programs are those in a folder that a user names.
Source: volcano-sh/kthena 98380a67 and e4fb6663, cmd/infer-controller and cmd/modelinfer-webhook.
"""

import base64
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from kthena_components.systems.matrixinfer.emit import ApiGroup
from sandbox.cluster import Sandbox, listens
from toolchain.programs import ToolchainError

VARIABLE = "MATRIXINFER"
"""Names a folder with a folder per API group, and in each one `FILES` and the CRD as YAML."""
CONTROLLER, WEBHOOK = FILES = ("infer-controller", "modelinfer-webhook")
Body = dict[str, Any]
_PATH = "/validate-workload-ai-v1alpha1-modelinfer"
_PORT = 8443
_AS_IN_A_POD = 'mount --bind "$0/etc" /etc && mount --bind "$0/run" /run && exec "$@"'
"""The webhook copies its options before it parses them, so it starts only in a pod: its certificate
is below /etc, and the address of the API server below /run. In a mount namespace of its own, they
are other folders."""


def given(environ: Mapping[str, str]) -> dict[ApiGroup, Path]:
    """Return the folders of the programs, by API group. Empty if the user names none.

    Raises:
        ToolchainError: A file is missing.
    """
    stated = environ.get(VARIABLE)
    if not stated:
        return {}
    folder = Path(stated).expanduser().absolute()
    found = {group: folder / group.value for group in ApiGroup if (folder / group.value).is_dir()}
    if not found:
        groups = " or ".join(group.value for group in ApiGroup)
        raise ToolchainError(f"{VARIABLE} is {folder}, which has no folder {groups}")
    for place in found.values():
        missing = [name for name in FILES if not (place / name).is_file()]
        missing += [] if any(place.glob("*.yaml")) else ["CRD of ModelInfer (*.yaml)"]
        if missing:
            raise ToolchainError(f"{VARIABLE}: {place} has no {', no '.join(missing)}")
    return found


def start(sandbox: Sandbox, group: ApiGroup, folder: Path) -> None:
    """Install the CRD of an API group, and start its two programs."""
    sandbox.define(
        body
        for file in sorted(folder.glob("*.yaml"))
        for body in yaml.safe_load_all(file.read_text())
        if body
    )
    _start_webhook(sandbox, group, folder)
    config = f"--kubeconfig={sandbox.layout.programs}"
    sandbox.processes.start(f"{CONTROLLER}-{group}", folder / CONTROLLER, [config])
    sandbox.api.create(_configuration(sandbox, group))


def stop(sandbox: Sandbox, group: ApiGroup) -> None:
    """Stop the programs of an API group, whose port the next one needs."""
    sandbox.api.delete(_configuration(sandbox, group))
    for name in FILES:
        sandbox.processes.stop(f"{name}-{group}")


def _start_webhook(sandbox: Sandbox, group: ApiGroup, folder: Path) -> None:
    """Start the webhook, with its certificate where it looks for it."""
    own = sandbox.layout.folder / f"{WEBHOOK}-{group}"
    certificates = own / "etc" / "webhook" / "certs"
    account = own / "run" / "secrets" / "kubernetes.io" / "serviceaccount"
    for place in (certificates, account):
        place.mkdir(parents=True)
    for name, of in (("tls.crt", "server.crt"), ("tls.key", "server.key")):
        (certificates / name).symlink_to(sandbox.layout.pki(of))
    (account / "ca.crt").symlink_to(sandbox.layout.authority)
    (account / "token").write_text("never sent: the webhook asks the API server nothing")
    unshare = shutil.which("unshare")
    if unshare is None:
        raise ToolchainError(f"{WEBHOOK} needs `unshare` of util-linux, which is not on PATH")
    arguments = ["--mount", "sh", "-c", _AS_IN_A_POD, str(own), str(folder / WEBHOOK)]
    host, port = sandbox.layout.address("api").split(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    sandbox.processes.start(f"{WEBHOOK}-{group}", Path(unshare), arguments, environ)
    sandbox.processes.wait(f"the webhook of {group}", partial(listens, _PORT))


def _configuration(sandbox: Sandbox, group: ApiGroup) -> Body:
    authority = base64.b64encode(sandbox.layout.authority.read_bytes()).decode()
    rule = {
        "apiGroups": [group.value],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["modelinfers"],
    }
    webhook = {
        "name": f"modelinfers.{group.value}",
        "clientConfig": {"url": f"https://127.0.0.1:{_PORT}{_PATH}", "caBundle": authority},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 30,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"modelinfers.{group.value}"},
        "webhooks": [webhook],
    }
