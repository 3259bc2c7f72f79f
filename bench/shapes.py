"""Inputs that grow in one place, by name. The time for them must grow linearly.

This module has pods and command lines, `kinds` lists of other kinds, and `many` numbers of objects.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context, gather

Body = dict[str, Any]
Work = Callable[[], object]
Shape = Callable[[int], Work]
"""Prepares an input of a size, and returns the function to measure."""

_VLLM: Final = ("vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", "-tp", "8")
GPUS: Final = {"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 8}}


def container(name: str, *command: str, **fields: Any) -> Body:
    """Return a container that starts an engine."""
    image = "vllm/vllm-openai:v0.11.0"
    return {"name": name, "image": image, "command": list(command or _VLLM), "resources": GPUS,
            **fields}  # fmt: skip


def workload(*containers: Body, name: str = "chat", **spec: Any) -> Body:
    """Return a Deployment of some containers."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"replicas": 1, "template": template},
    }


def custom(version: str, kind: str, spec: Body, name: str = "chat", **metadata: Any) -> Body:
    """Return an object of another kind."""
    return {"apiVersion": version, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": "serving", **metadata}}  # fmt: skip


def config_map(data: Mapping[str, str], name: str = "engine", namespace: str = "serving") -> Body:
    """Return a ConfigMap."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def judged(make: Callable[[int], Body]) -> Shape:
    """Check a manifest alone."""

    def shape(size: int) -> Work:
        body = make(size)
        return lambda: check_manifest(body)

    return shape


def beside(make: Callable[[int], tuple[Body, Body]]) -> Shape:
    """Check a manifest with a ConfigMap."""

    def shape(size: int) -> Work:
        body, beside = make(size)
        around = Context(config_maps=gather([beside]))
        return lambda: check_manifest(body, context=around)

    return shape


def _command(words: Callable[[int], list[str]]) -> Shape:
    return judged(lambda n: workload(container("engine", *_VLLM, *words(n))))


def _script(text: Callable[[int], str], *words: str) -> Shape:
    return judged(lambda n: workload(container("engine", "sh", "-c", text(n), *words)))


def _mounted(data: Callable[[int], Mapping[str, str]], containers: Callable[[int], int]) -> Shape:
    """Check containers that mount one ConfigMap and run its key `start`."""
    volumes = [{"name": "c", "configMap": {"name": "engine"}}]
    mounts = [{"name": "c", "mountPath": "/c"}]

    def make(n: int) -> tuple[Body, Body]:
        engines = [
            container(f"e{i}", "sh", "/c/start", volumeMounts=mounts) for i in range(containers(n))
        ]
        return workload(*engines, volumes=volumes), config_map(data(n))

    return beside(make)


def _many_volumes(n: int) -> Body:
    volumes = [{"name": f"v{i}", "emptyDir": {"medium": "Memory"}} for i in range(n)]
    mounts = [{"name": f"v{n - 1}", "mountPath": "/dev/shm"}]  # noqa: S108 - where NCCL looks
    return workload(*(container(f"e{i}", volumeMounts=mounts) for i in range(n)), volumes=volumes)


def _mounts(n: int) -> Body:
    volumes = [{"name": f"v{i}", "emptyDir": {}} for i in range(n)]
    mounts = [{"name": f"v{i}", "mountPath": f"/v{i}"} for i in range(n)]
    return workload(container("engine", volumeMounts=mounts), volumes=volumes)


def _missing_keys(n: int) -> tuple[Body, Body]:
    taken = ({"configMapKeyRef": {"name": "engine", "key": f"k{i}"}} for i in range(n))
    env = [{"name": f"V{i}", "valueFrom": one} for i, one in enumerate(taken)]
    return workload(container("engine", env=env)), config_map({"a": "1"})


PODS: Final[Mapping[str, Shape]] = {
    "containers": judged(lambda n: workload(*(container(f"e{i}") for i in range(n)))),
    "init containers": judged(
        lambda n: workload(
            container("e"), initContainers=[container(f"i{i}", "true") for i in range(n)]
        )
    ),
    "volumes and mounts": judged(_mounts),
    "containers × volumes": judged(_many_volumes),
    "env, each of the one before": judged(
        lambda n: workload(
            container(
                "e",
                *_VLLM,
                f"$(V{n - 1})",
                env=[{"name": f"V{i}", "value": f"$(V{i - 1})"} for i in range(n)],
            )
        )
    ),
    "envFrom": judged(
        lambda n: workload(
            container("e", envFrom=[{"secretRef": {"name": f"s{i}"}} for i in range(n)])
        )
    ),
    "ports": judged(
        lambda n: workload(container("e", ports=[{"containerPort": i + 1} for i in range(n)]))
    ),
    "tolerations": judged(
        lambda n: workload(
            container("e"), tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(n)]
        )
    ),
    "unknown fields": judged(
        lambda n: workload({**container("e"), **{f"f{i}": 1 for i in range(n)}})
    ),
    "wrong variables": judged(
        lambda n: workload(container("e", env=[{"name": f"V{i}", "value": i} for i in range(n)]))
    ),
    "keys that a ConfigMap lacks": beside(_missing_keys),
    "containers × keys of a ConfigMap": _mounted(
        lambda n: {"start": "vllm serve m -tp 8", **{f"k{i}": "x" for i in range(n)}}, lambda n: n
    ),
    "lines × keys of a ConfigMap": _mounted(
        lambda n: {
            "start": "\n".join(f"/c/k{i}" for i in range(n)) + "\nvllm serve m -tp 8",
            **{f"k{i}": "true" for i in range(n)},
        },
        lambda _: 1,
    ),
}
COMMANDS: Final[Mapping[str, Shape]] = {
    "words": _command(lambda n: [word for i in range(n) for word in ("--seed", str(i))]),
    "unknown options": _command(lambda n: [f"--no-such-{i}" for i in range(n)]),
    "options of Ray": _script(
        lambda n: f"ray start --head {' '.join(f'--no-such-{i}' for i in range(n))}\nvllm serve m"
    ),
    "keys of one option": _command(lambda n: [f"--speculative-config.k{i}=1" for i in range(n)]),
    "one long word": _command(lambda n: ["x" * 10 * n]),
    "one long line": _script(lambda n: f"vllm serve m {'-tp 8 ' * n}"),
    "lines of engines": _script(lambda n: "vllm serve m -tp 8\n" * n),
    "lines of ray": _script(lambda n: "ray start --head --no-such\n" * n),
    "assignments": _script(lambda n: "A+=xy\n" * n + "vllm serve m -tp $A"),
    "nested commands": _script(lambda n: "vllm serve m " + "$(" * n + ")" * n),
    "open commands": _script(lambda n: "vllm serve m " + "$(" * n),
    "quotes": _script(lambda n: "vllm serve m " + "'\"" * n),
    "defaults in defaults": _script(lambda n: "vllm serve m " + "${A:-" * n + "}" * n),
    "here-documents": _script(lambda n: "cat <<E\nx\nE\n" * n + "vllm serve m -tp 8"),
    "here-documents that stay open": _script(lambda n: "cat <<E\n" * n + "vllm serve m -tp 8"),
    "$@": _script(lambda n: 'true "$@"\n' * n + "vllm serve m", "sh", *("x" for _ in range(99))),
    "functions": _script(lambda n: "f() {\n" * n + "vllm serve m\n" + "}\n" * n),
    "assigned arrays": _script(lambda n: "A=(a b)\n" * n + 'vllm serve m "${A[@]}"'),
}
