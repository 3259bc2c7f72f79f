"""How each program is started. Every one listens on loopback, or not at all."""

import json
from collections.abc import Callable

from sandbox.layout import Layout

_FAST = ("--kube-api-qps=5000", "--kube-api-burst=10000")
SCHEDULER = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: binpack}
  - {name: network-topology-aware}
"""
"""Volcano's own default has no network-topology-aware: see its docs of network topology."""


def etcd(layout: Layout) -> list[str]:
    """Keep the cluster's state; a sandbox needs no state that outlives a power cut."""
    client, peer = (f"http://{layout.address(port)}" for port in ("etcd", "peer"))
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def api_server(layout: Layout, *, audit: bool = False) -> list[str]:
    """Serve the API with RBAC, and without limits on how fast it may be asked."""
    key, certificate = layout.pki("server.key"), layout.pki("server.crt")
    return [
        f"--etcd-servers=http://{layout.address('etcd')}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={layout.ports['api']}",
        "--endpoint-reconciler-type=none",
        "--allow-privileged",
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={layout.authority}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
        "--enable-priority-and-fairness=false",
        *(_audit(layout) if audit else ()),
    ]


def _audit(layout: Layout) -> list[str]:
    """Note every request of a ServiceAccount: who asked what of which object."""
    policy = layout.folder / "audit.json"
    # The cluster's own programs have certificates; what they ask would fill the log and turn it.
    rules = [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}]
    body = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
    policy.write_text(json.dumps(body | {"omitStages": ["RequestReceived"]}))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={layout.log('audit')}"]


def controller_manager(layout: Layout) -> list[str]:
    """Run Kubernetes' own controllers, without those for clouds and for node addresses."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports['controllers']}",
        "--leader-elect=false",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        f"--root-ca-file={layout.authority}",
        f"--service-account-private-key-file={layout.pki('server.key')}",
        "--node-monitor-grace-period=3600s",
        "--controllers=*,-nodeipam,-route,-cloud-node-lifecycle,-service-lb-controller",
        *_FAST,
    ]


def volcano_admission(layout: Layout) -> list[str]:
    """Judge Volcano's objects: the webhook configurations must be there before it starts."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--listen-address=127.0.0.1",
        f"--port={layout.ports['volcano']}",
        f"--tls-cert-file={layout.pki('server.crt')}",
        f"--tls-private-key-file={layout.pki('server.key')}",
        f"--ca-cert-file={layout.authority}",
        "--enabled-admission=/podgroups/validate,/hypernodes/validate,/queues/validate",
        f"--webhook-url=https://{layout.address('volcano')}",
    ]


def volcano_controllers(layout: Layout) -> list[str]:
    """Open queues, and keep the phases of PodGroups."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        "--enable-healthz=false",
        *_FAST,
    ]


def volcano_scheduler(layout: Layout) -> list[str]:
    """Place gangs, five times a second."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        f"--scheduler-conf={layout.folder / 'scheduler.yaml'}",
        "--leader-elect=false",
        "--schedule-period=200ms",
        "--percentage-nodes-to-find=100",
        "--csi-storage=false",
    ]


def kthena_admission(layout: Layout) -> list[str]:
    """Judge ModelServings."""
    return [
        f"--address={layout.address('kthena')}",
        f"--tls-cert-file={layout.pki('server.crt')}",
        f"--tls-private-key-file={layout.pki('server.key')}",
    ]


def kthena(layout: Layout) -> list[str]:
    """Make pods of ModelServings. Its admission runs by itself: see toolchain/kthena/main.go."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--enable-webhook=false",
        "--controllers=modelserving",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def kwok(layout: Layout) -> list[str]:
    """Play the nodes, and the pods on them."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--manage-all-nodes=true",
        f"--config={layout.stages}",
        "--node-ip=127.0.0.1",
        f"--server-address={layout.address('kwok')}",
        "--node-lease-duration-seconds=40",
    ]


CONTROLLERS: dict[str, Callable[[Layout], list[str]]] = {
    "kube-controller-manager": controller_manager,
    "vc-controller-manager": volcano_controllers,
    "vc-scheduler": volcano_scheduler,
    "kthena-controller-manager": kthena,
    "kwok": kwok,
}
"""Whatever makes, places and plays pods; none of them listens for the API server."""
