"""The command lines of the programs. Each one listens only on loopback, or not at all."""

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
"""Volcano's default config lacks network-topology-aware: see its docs on network topology."""


def etcd(layout: Layout) -> list[str]:
    """Store the cluster's state, without fsync: a sandbox need not survive a power failure."""
    client, peer = (f"http://{layout.address(port)}" for port in ("etcd", "peer"))
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        "--unsafe-no-fsync",
        "--backend-batch-interval=1s",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def api_server(layout: Layout, *, audit: bool = False) -> list[str]:
    """Serve the API with RBAC and without rate limits."""
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
        f"--token-auth-file={layout.pki('tokens.csv')}",
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
    """Log every request of a ServiceAccount."""
    policy = layout.folder / "audit.json"
    # Not the cluster's own programs, who are the administrator: they would fill and rotate the log.
    rules = [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}]
    body = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
    policy.write_text(json.dumps(body | {"omitStages": ["RequestReceived"]}))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={layout.log('audit')}"]


def controller_manager(layout: Layout) -> list[str]:
    """Run Kubernetes' controllers, except those for clouds and for node addresses."""
    return [
        f"--kubeconfig={layout.programs}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports['controllers']}",
        "--leader-elect=false",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        f"--root-ca-file={layout.authority}",
        f"--service-account-private-key-file={layout.pki('server.key')}",
        "--node-monitor-grace-period=3600s",
        # Every pod that starts or ends would write the endpoints of its Services at once.
        "--endpoint-updates-batch-period=1s",
        "--endpointslice-updates-batch-period=1s",
        "--controllers=*,-nodeipam,-route,-cloud-node-lifecycle,-service-lb-controller",
        *_FAST,
    ]


def volcano_admission(layout: Layout) -> list[str]:
    """Validate Volcano's objects. The webhook configurations must exist before this starts."""
    return [
        f"--kubeconfig={layout.programs}",
        "--listen-address=127.0.0.1",
        f"--port={layout.ports['volcano']}",
        f"--tls-cert-file={layout.pki('server.crt')}",
        f"--tls-private-key-file={layout.pki('server.key')}",
        f"--ca-cert-file={layout.authority}",
        "--enabled-admission=/podgroups/validate,/hypernodes/validate,/queues/validate",
        f"--webhook-url=https://{layout.address('volcano')}",
    ]


def volcano_controllers(layout: Layout) -> list[str]:
    """Open queues, and update the phases of PodGroups."""
    return [
        f"--kubeconfig={layout.programs}",
        "--leader-elect=false",
        "--enable-healthz=false",
        *_FAST,
    ]


def volcano_scheduler(layout: Layout) -> list[str]:
    """Place gangs, five times a second."""
    return [
        f"--kubeconfig={layout.programs}",
        f"--scheduler-conf={layout.folder / 'scheduler.yaml'}",
        "--leader-elect=false",
        "--schedule-period=200ms",
        "--percentage-nodes-to-find=100",
        "--csi-storage=false",
    ]


def kthena_admission(layout: Layout) -> list[str]:
    """Validate ModelServings."""
    return [
        f"--address={layout.address('kthena')}",
        f"--tls-cert-file={layout.pki('server.crt')}",
        f"--tls-private-key-file={layout.pki('server.key')}",
    ]


def kthena(layout: Layout) -> list[str]:
    """Create the pods of ModelServings. Admission is separate: see toolchain/kthena/main.go."""
    return [
        f"--kubeconfig={layout.programs}",
        "--enable-webhook=false",
        "--controllers=modelserving,modelbooster,autoscaler",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def lws(layout: Layout) -> list[str]:
    """Validate LeaderWorkerSets and create their pods, with a PodGroup of Volcano for each gang."""
    serving = layout.folder / "lws"
    serving.mkdir(exist_ok=True)
    for name, of in (("tls.crt", "server.crt"), ("tls.key", "server.key")):
        if not (serving / name).exists():
            (serving / name).symlink_to(layout.pki(of))
    host, port = layout.address("lws").split(":")
    config = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": host, "port": int(port), "certDir": str(serving)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "gangSchedulingManagement": {"schedulerProvider": "volcano"},
    }
    file = serving / "config.json"
    file.write_text(json.dumps(config))
    return [f"--kubeconfig={layout.programs}", f"--config={file}", "--zap-log-level=info"]


def kwok(layout: Layout) -> list[str]:
    """Simulate the nodes and the pods on them."""
    return [
        f"--kubeconfig={layout.programs}",
        "--manage-all-nodes=true",
        f"--config={layout.stages}",
        "--node-ip=127.0.0.1",
        f"--server-address={layout.address('kwok')}",
        "--node-lease-duration-seconds=3600",
    ]


CONTROLLERS: dict[str, Callable[[Layout], list[str]]] = {
    "kube-controller-manager": controller_manager,
    "vc-controller-manager": volcano_controllers,
    "vc-scheduler": volcano_scheduler,
    "kthena-controller-manager": kthena,
    "kwok": kwok,
}
"""The programs that create, schedule and simulate pods. The API server calls none of them."""
