"""Checks shared memory, pinned images, and plain-text tokens of pods."""

from collections.abc import Iterator

from kthena_components.core.facts.container import (
    SHM_PATH,
    ContainerFacts,
    SharedMemory,
    TokenFacts,
    TokenKind,
)
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import together, write
from kthena_components.core.rules.support.messages import title, unjudged
from kthena_components.core.values.images import read_image, shown_image
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt, Unknown


def shm_present(facts: ServingFacts) -> Iterator[Finding]:
    """An engine of several ranks has shared memory: NCCL and Ray exchange data at /dev/shm.

    Without a volume there, the container runtime's default is 64 MiB. Advisory, because that is
    enough for small models, and a runtime may be configured to provide more. On TPUs and on AWS
    Neuron one process serves all devices of a pod. It stays advisory for a ModelBooster, whose pods
    Kthena writes.

    Pass: tensor 8 with an emptyDir of medium Memory at /dev/shm, the node's own, or hostIPC.
    Fail: --tensor-parallel-size 8 in a container without a mount at /dev/shm.
    Level: advisory.
    Source: containerd pkg/oci/mounts.go (size=65536k); NCCL user guide, Shared memory;
    vllm/platforms/neuron.py, which sets the executor uni.
    """
    for engine in facts.engines:
        # One entry in an overlay applies to the entry and the workers.
        yield from dict.fromkeys(f for pod in _pods(engine) for f in _shm(engine, pod))


_SHM_SEEN = {
    SharedMemory.NOTHING: "has nothing mounted at /dev/shm and gets 64 MiB there",
    SharedMemory.DISK: "has a volume at /dev/shm that is not in memory",
    SharedMemory.MISSING: "mounts a volume at /dev/shm that the pod does not have",
    SharedMemory.FIXED: "gets 64 MiB at /dev/shm, which its object has no field for",
}
_SHM_VOLUME = "dshm"
_MOUNT = "mount an emptyDir with medium Memory at /dev/shm"


def _shm(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    own = pod.own
    if own is None or own.shm is SharedMemory.MEMORY or pod.one_process is True:
        return
    ranks = _ranks(engine, pod)
    unknown = first_unknown(pod.one_process, own.shm, ranks)
    if isinstance(ranks, int) and ranks <= 1:
        return
    if unknown is not None:
        yield from unjudged(engine, unknown, "shm-present", own.path)
    elif isinstance(own.shm, SharedMemory):
        is_fixed = own.shm is SharedMemory.FIXED
        yield Finding(
            path=own.path,
            seen=f"{title(engine)}, container '{own.name}' {_SHM_SEEN[own.shm]}, and its ranks "
            "exchange data through it",
            remedy=f"write a ModelServing, and {_MOUNT}" if is_fixed else _mounted(own),
            rule="shm-present",
            level=Level.ADVISORY,
            most=Level.ADVISORY if is_fixed else Level.MANDATORY,
        )


def _mounted(own: ContainerFacts) -> str:
    """Mount memory into a container of a template that has nothing at that path."""
    pod, found, _ = own.path.rpartition(".containers[")
    if own.shm is not SharedMemory.NOTHING or not found:
        return _MOUNT
    volume = {"name": _SHM_VOLUME, "emptyDir": {"medium": "Memory"}}
    mount = {"name": _SHM_VOLUME, "mountPath": SHM_PATH}
    return together(
        write(volume, at=f"{pod}.volumes[-]"),
        write(mount, at=f"{own.path}.volumeMounts[-]"),
        text=_MOUNT,
    )


def _ranks(engine: EngineFacts, pod: PodFacts) -> MaybeInt:
    """Return a number above 1 if ranks communicate: several GPUs, or a shared model."""
    sizes: list[MaybeInt] = [pod.gpus]
    for command in (engine.entry.command, pod.command):
        if command is not None and command.engine is not None:
            sizes += [command.tensor, command.pipeline]
    several = [size for size in sizes if isinstance(size, int) and size > 1]
    return several[0] if several else first_unknown(*sizes) or 1


def hf_token_from_secret(facts: ServingFacts) -> Iterator[Finding]:
    """A Hugging Face token comes from a Secret, never from the manifest itself.

    Everyone who can read the manifest, the repository or the state can use the token. Variables of
    huggingface_hub are recognised by name, other tokens by their format. No message contains the
    token. A text in place of a token, such as `<your token>`, is allowed.

    Pass: 1 variable HF_TOKEN with valueFrom.secretKeyRef; HF_TOKEN with the value HF_TOKEN.
    Fail: HF_TOKEN with a value or from a ConfigMap; a command line with hf_ and 34 more letters.
    Level: mandatory.
    Source: huggingface_hub/constants.py; Kubernetes documentation, Good practices for Secrets.
    """
    for engine in facts.engines:
        yield from dict.fromkeys(f for pod in _pods(engine) for f in _tokens(engine, pod))


def _tokens(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    for container in (*((pod.own,) if pod.own else ()), *pod.others):
        for token in container.tokens:
            yield _token(engine, container, token)
        if container.hidden_token is not None:
            hidden = container.hidden_token
            yield from unjudged(engine, hidden, "hf-token-from-secret", container.path)


def _token(engine: EngineFacts, container: ContainerFacts, token: TokenFacts) -> Finding:
    if token.kind is TokenKind.VALUE:
        seen = f"has {token.variable} in plain text"
        rest = ", and everyone who reads the manifest can use that token"
    elif token.kind is TokenKind.CONFIG_MAP:
        seen, rest = f"takes {token.variable} from a ConfigMap", ", which is not kept secret"
    else:
        where = "its command line" if token.variable is None else f"variable {token.variable}"
        seen = f"has a text in {where} that looks like a Hugging Face token (hf_…)"
        rest = ", and everyone who reads the manifest can use it"
    name = token.variable if token.kind is not TokenKind.PATTERN else "HF_TOKEN"
    return Finding(
        path=token.path,
        seen=f"{title(engine)}, container '{container.name}' {seen}{rest}",
        remedy=f"give {name} with valueFrom.secretKeyRef, and revoke this token",
        rule="hf-token-from-secret",
    )


def image_pinned(facts: ServingFacts) -> Iterator[Finding]:
    """An engine's image is pinned, and its entry and workers run the same one.

    With a moving tag, a restarted pod may run another version: advisory. Two versions in one engine
    never connect: mandatory. Registries are compared, except that Docker Hub's host may be left
    out.

    Pass: vllm/vllm-openai:v0.33.0 in both templates, or the same digest in both.
    Fail: no tag or :latest (advisory); v0.33.0 in the entry and v0.32.0 in the worker (mandatory).
    Level: advisory; mandatory for different images.
    Source: Kubernetes documentation, Images; vLLM docs/serving/parallelism_scaling.md (identical
    environments on all nodes).
    """
    for engine in facts.engines:
        command, entry = engine.entry.command, engine.entry.own
        worker = engine.worker.own if engine.worker and engine.pods != 1 else None
        if (
            entry is None
            or command is None
            or (command.engine is None and command.ray_role is None)
        ):
            continue
        images = [own.image for own in (entry, worker) if own is not None]
        unknown = first_unknown(*images)
        yield from _unpinned(engine, entry)
        if unknown is not None:
            yield from unjudged(engine, unknown, "image-pinned", entry.image_path)
        elif worker is not None:
            yield from _unlike(engine, entry, worker)


def _unpinned(engine: EngineFacts, container: ContainerFacts) -> Iterator[Finding]:
    name = container.image
    if name is None or isinstance(name, Unknown) or read_image(name).pinned:
        return
    tag = read_image(name).tag
    stated = f"the tag {tag}" if tag else "no tag, which means latest"
    yield Finding(
        path=container.image_path,
        seen=f"{title(engine)} runs '{shown_image(name)}', which has {stated}, and a restarted pod "
        "may run another version",
        remedy="write the tag of a release, or a digest",
        rule="image-pinned",
        level=Level.ADVISORY,
    )


def _unlike(
    engine: EngineFacts, entry: ContainerFacts, worker: ContainerFacts
) -> Iterator[Finding]:
    if not isinstance(entry.image, str) or not isinstance(worker.image, str):
        return
    if read_image(entry.image).same_build(read_image(worker.image)):
        return
    yield Finding(
        path=worker.image_path,
        seen=f"{title(engine)} runs '{shown_image(worker.image)}' in its workers and "
        f"'{shown_image(entry.image)}' in its entry, and two versions never form one engine",
        remedy=_same_image(entry.image, worker.image),
        rule="image-pinned",
    )


def _same_image(entry: str, worker: str) -> str:
    """Write the image of the entry in both, as a change only if both are of one product."""
    said = f"write '{shown_image(entry)}' in both"
    return (
        write(entry, said)
        if read_image(entry).repository == read_image(worker).repository
        else said
    )


def _pods(engine: EngineFacts) -> tuple[PodFacts, ...]:
    """Return the templates of an engine's pods."""
    worker = engine.worker if engine.pods != 1 else None
    return (engine.entry,) if worker is None else (engine.entry, worker)
