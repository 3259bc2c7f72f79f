"""Checks that the init containers of a pod end."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.remedies import either, write
from kthena_components.core.rules.support.messages import title


def init_container_ends(facts: ServingFacts) -> Iterator[Finding]:
    """No init container runs an engine's server, unless it is a sidecar.

    Kubernetes starts the other containers when each init container has ended, and a server does not
    end. With restartPolicy Always it is a sidecar, which runs beside them. Servers that a shell or
    a program such as timeout starts are not reported: it may end them.

    Pass: initContainers[0] with vllm serve and restartPolicy: Always.
    Fail: initContainers[0] with vllm serve and no restartPolicy.
    Level: mandatory.
    Source: kubernetes pkg/kubelet/kuberuntime/kuberuntime_container.go
        computeInitContainerActions; KEP-753, Sidecar containers.
    """
    for engine in facts.engines:
        for pod in filter(None, (engine.entry, engine.worker)):
            for container in pod.others:
                if container.serves:
                    yield Finding(
                        path=container.path,
                        seen=f"{title(engine)} has an init container '{container.name}' that runs "
                        "an engine's server, which does not end, so the pod's other containers "
                        "never start",
                        remedy=either(
                            write(
                                "Always",
                                "write restartPolicy: Always in it",
                                at=f"{container.path}.restartPolicy",
                            ),
                            "move it to containers",
                        ),
                    )
