"""A user of a sandbox with exactly the given permissions, and a stack that it deploys."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from conformance.support.cluster import NAMESPACE
from kthena_components.cluster.client import Cluster
from sandbox.cluster import Sandbox
from sandbox.pki import kubeconfig
from tests.support.engine import Run, Stack

NAME = "deployer"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
RBAC = "rbac.authorization.k8s.io/v1"
SECONDS = 86_400
Rules = Sequence[Mapping[str, Any]]
Request = tuple[str, str, str]
"""API group, resource, verb."""


@dataclass(frozen=True, slots=True)
class Deployer:
    """A ServiceAccount. The administrator writes a ClusterRole with its permissions."""

    api: Cluster
    """The client of the administrator."""
    kubeconfig: Path
    audit: Path

    @classmethod
    def make(cls, sandbox: Sandbox, folder: Path) -> "Deployer":
        """Create the account without permissions, and a kubeconfig with its token."""
        api = sandbox.api
        account = {"name": NAME, "namespace": NAMESPACE}
        api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        for body in _binding():
            api.create(body)
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": SECONDS}}  # fmt: skip
        token = api.ask("POST", path, request)["status"]["token"]
        file = folder / "deployer.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(kubeconfig(sandbox.layout, NAME, {"token": token}))
        return cls(api, file, sandbox.layout.log("audit"))

    def may(self, rules: Rules) -> None:
        """Grant these permissions and no others. RBAC applies them at once or a moment later."""
        self.api.patch(_role(), {"rules": list(rules)})

    def requests(self) -> Counter[Request]:
        """Count its requests since the cluster started, including rejected ones."""
        found: dict[str, Request] = {}
        for event in _events(self.audit):
            named = event.get("objectRef") or {}
            if event["user"]["username"] == USER and "resource" in named:
                below = named.get("subresource")
                resource = f"{named['resource']}/{below}" if below else named["resource"]
                asked = (named.get("apiGroup", ""), resource, event["verb"])
                found[event["auditID"]] = asked
        return Counter(found.values())


def lifecycle(
    stack: Stack, change: Any, needed: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, Run]]:
    """Yield the results of a deployer's commands on a stack. The first one always runs.

    Args:
        stack: The stack.
        change: Edits its config before the second command.
        needed: Whether another command runs, by its name.
    """
    yield "up", stack.up()
    stack.change(change)
    for what, command in (
        ("preview of a change", partial(stack.preview, "--diff")),
        ("up of a change", stack.up),
        ("refresh", stack.refresh),
        ("destroy", stack.destroy),
    ):
        if needed(what):
            yield what, command()


def _events(file: Path) -> Iterator[dict[str, Any]]:
    with file.open() as lines:
        for line in lines:
            with suppress(json.JSONDecodeError):  # the last line may be incomplete
                yield json.loads(line)


def _role(rules: Rules = ()) -> dict[str, Any]:
    return {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": NAME},
            "rules": list(rules)}  # fmt: skip


def _binding() -> list[dict[str, Any]]:
    role = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": NAME}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    return [
        _role(),
        {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
         "roleRef": role, "subjects": [subject]},
    ]  # fmt: skip
