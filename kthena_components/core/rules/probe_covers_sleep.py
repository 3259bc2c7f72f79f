"""Checks that no probe ends a container while its script still sleeps."""

from collections.abc import Iterator

from kthena_components.core.facts.listening import restarting_probe
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_pods import pods_of


def probe_covers_sleep(facts: ServingFacts) -> Iterator[Finding]:
    """A startupProbe, or a livenessProbe without one, outlasts a sleep before the engine.

    A script that sleeps before it starts the engine answers no probe until then. If the kubelet
    restarts the container before that, the engine never starts. How long the engine itself takes to
    load is probe-covers-loading's concern.

    Pass: sleep 30 and a startupProbe with periodSeconds 10 and failureThreshold 60.
    Fail: sleep 300 and a startupProbe with periodSeconds 10 and failureThreshold 3.
    Level: mandatory.
    Source: kubernetes pkg/kubelet/prober/worker.go doProbe; Kubernetes documentation, Configure
    Liveness, Readiness and Startup Probes.
    """
    for engine in facts.engines:
        for pod in pods_of(engine):
            slept = pod.command.slept if pod.command is not None else 0
            probe = restarting_probe(pod)
            patience = probe.patience if probe is not None else None
            if probe is not None and isinstance(patience, int) and slept > patience:
                yield Finding(
                    path=probe.path,
                    seen=f"restarts the container after {patience} s at the latest, but its script "
                    f"sleeps {slept} s before it starts the engine",
                    remedy="remove the sleep, or raise failureThreshold of a startupProbe",
                )
