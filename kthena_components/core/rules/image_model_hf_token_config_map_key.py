"""Rules of what an engine starts from: image, model, token of Hugging Face, ConfigMaps."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines import SERVE
from kthena_components.core.facts.container import ContainerFacts, TokenFacts, TokenKind
from kthena_components.core.facts.files import HUB_NAME
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.engine_pods import (
    ALWAYS,
    Start,
    all_starts,
    pods_of,
    starts,
)
from kthena_components.core.rules.support.messages import cannot_check, each_engine, title
from kthena_components.core.values.display import display
from kthena_components.core.values.images import Image, Version, read_image, shown_image
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import Unknown

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
VLLM_INSIDE_UNTIL: Version = (0, 4, 9, 2)
"""The last SGLang that installs vLLM, in its images for AMD."""


def engine_image(facts: ServingFacts) -> Iterator[Finding]:
    """An engine runs in an image that contains it: vLLM's own image has no SGLang, nor the reverse.

    The rule checks the images that the vLLM and SGLang projects build, from any registry. The
    content of other images is unknown. SGLang's own images for AMD contained vLLM up to
    0.4.9.post2, so those releases are not checked.

    Pass: sglang.launch_server in lmsysorg/sglang:v0.5.23; any image of your own.
    Fail: kind vllm, or `vllm serve`, in lmsysorg/sglang:v0.5.23.
    Level: mandatory.
    Source: vllm docker/Dockerfile and requirements of 0.33.0; what the wheels of sglang 0.4.6 to
    0.5.23 require.
    """
    for engine in facts.engines:
        every = (found for pod in pods_of(engine) for found in _wrong_image(engine, pod))
        # In a component both have the same path: the one that the user wrote.
        yield from dict.fromkeys(every)


def _wrong_image(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    """Refuse the official image of another engine; other images may contain several engines."""
    own, image = pod.own, pod.image
    kind = pod.command.engine if pod.command else None
    if own is None or image is None or image.engine in {None, kind}:
        return
    if kind not in TITLES or _may_hold(image, kind):
        return
    builder = str(image.engine)
    started, holds = TITLES[kind], TITLES[builder]
    yield Finding(
        path=own.image_path,
        seen=f"{title(engine)} starts {started}, but '{shown_image(str(own.image))}' is {holds}'s "
        "own image, which does not contain it",
        remedy=f"use an image of {started}, or start {holds} (kind: {builder} in a component)",
    )


def _may_hold(image: Image, engine: str) -> bool:
    if any(each.engine in {engine, None} for each in image.installs):
        return True
    release = image.built_release_of("sglang")
    return engine == "vllm" and release is not None and release <= VLLM_INSIDE_UNTIL


@each_engine
def image_pinned(engine: EngineFacts) -> Iterator[Finding]:
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
    command, entry = engine.entry.command, engine.entry.own
    worker = engine.worker.own if engine.worker and engine.pods != 1 else None
    if entry is None or command is None or (command.engine is None and command.ray_role is None):
        return
    images = [own.image for own in (entry, worker) if own is not None]
    yield from _unpinned(engine, entry)
    require_known(entry.image_path, *images)
    if worker is not None:
        yield from _unlike(engine, entry, worker)


def _unpinned(engine: EngineFacts, container: ContainerFacts) -> Iterator[Finding]:
    """Advise to pin an image whose tag can move, such as latest or none."""
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
        level=Level.ADVISORY,
    )


def _unlike(
    engine: EngineFacts, entry: ContainerFacts, worker: ContainerFacts
) -> Iterator[Finding]:
    """Refuse images of different builds in the entry and the workers of one engine."""
    if not isinstance(entry.image, str) or not isinstance(worker.image, str):
        return
    if read_image(entry.image).same_build(read_image(worker.image)):
        return
    yield Finding(
        path=worker.image_path,
        seen=f"{title(engine)} runs '{shown_image(worker.image)}' in its workers and "
        f"'{shown_image(entry.image)}' in its entry, and two versions never form one engine",
        remedy=_same_image(entry.image, worker.image),
    )


def _same_image(entry: str, worker: str) -> str:
    """Write the image of the entry in both, as a change only if both are of one product."""
    said = f"write '{shown_image(entry)}' in both"
    return (
        write(entry, said)
        if read_image(entry).repository == read_image(worker).repository
        else said
    )


MODEL = "model-stated"
_NEWER_DEFAULT = (0, 10)
"""The first vLLM with the newer default model."""
_DEFAULTS = "facebook/opt-125m", "Qwen/Qwen3-0.6B"


def model_stated(facts: ServingFacts) -> Iterator[Finding]:
    """Each pod that starts an engine names the model.

    Without one, vLLM serves a small default model: facebook/opt-125m up to 0.9.2, and
    Qwen/Qwen3-0.6B since then. SGLang does not start. Other programs that start an engine, such as
    Dynamo, are not checked.

    Pass: vllm serve Qwen/Qwen3-32B.
    Fail: vllm serve -tp 8; python3 -m sglang.launch_server --tp 8.
    Level: advisory for vLLM, which starts; mandatory for SGLang.
    Source: vllm/config/model.py ModelConfig.model; sglang/srt/server_args.py model_path.
    """
    for start in starts(facts, "vllm", "sglang"):
        reported: set[str] = set()
        for pod in filter(None, (start.engine.entry, start.engine.worker)):
            if pod.command_path not in reported:
                reported.add(pod.command_path)
                yield from _modelless(start, pod)


def _modelless(start: Start, pod: PodFacts) -> Iterator[Finding]:
    """Report a command without a model: SGLang ends, and vLLM serves its default model."""
    command = pod.command
    if command is None or command.release is None or command.model is not None:
        return
    if any(problem.flag == SERVE for problem in command.problems):
        return  # `vllm serve` of this release ends without one
    version = command.release.version
    if command.engine == "sglang":
        remedy, level = "add --model-path", ALWAYS
        seen = "names no model, and SGLang does not start without one"
    else:
        default = _DEFAULTS[version >= _NEWER_DEFAULT]
        remedy, level = "write the model after `vllm serve`, or --model", Level.ADVISORY
        seen = f"names no model, and {command.release.title} serves {default} then"
    here = replace(start, command=command)
    for finding in here.refused(seen, remedy, level):
        yield replace(finding, path=pod.command_path)


_LOADS = frozenset({None, "auto", "safetensors", "hf"})
"""Formats in which weights come from the hub by the name of a model."""


def model_offline(facts: ServingFacts) -> Iterator[Finding]:
    """An engine that must not download its model finds it in a volume.

    With HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE, if HF_HUB_OFFLINE is not set) the engine reads a
    model only from the cache at HF_HOME, and stops if the model is not there. vLLM's downloads from
    ModelScope obey the variable, too. The images of vLLM and SGLang contain no models. The rule
    reports nothing if a volume, an init container, a hook or a script may bring the model, if the
    image is not the engine's own, or if a controller composes the pods and may bring the model, as
    KServe, KubeAI, OME, Dynamo and llmaz do.

    Pass: HF_HUB_OFFLINE 1, HF_HOME /cache and a PersistentVolumeClaim there; --model /models/llama;
    HF_HUB_OFFLINE 0.
    Fail: HF_HUB_OFFLINE 1 and vllm serve Qwen/Qwen3-32B in vllm/vllm-openai:v0.22.0, with no
    volumes, or with an emptyDir.
    Level: mandatory.
    Source: huggingface_hub/constants.py HF_HUB_OFFLINE of 0.34.4 and 1.2.3; vllm 0.6.3 to 0.33.0,
    vllm/transformers_utils/repo_utils.py get_model_path and
    vllm/model_executor/model_loader/weight_utils.py; sglang/srt/model_loader/weight_utils.py.
    """
    for start in all_starts(facts, "vllm", "sglang") if facts.pods_as_stated else ():
        pod, model = start.pod, start.command.model
        image = pod.image
        if not pod.offline or image is None or not image.is_own(str(start.command.engine)):
            continue
        by_name = isinstance(model, str) and HUB_NAME.fullmatch(model) is not None
        if by_name and not start.hidden and start.option("--load-format") in _LOADS:
            yield from start.refused(
                f"loads {display(model)} by its hub name, but {pod.offline} forbids downloads, and "
                "no volume or init container brings the model",
                "mount a volume with the model, and write its path in HF_HOME, or remove "
                f"{pod.offline}",
            )


@each_engine
def hf_token_from_secret(engine: EngineFacts) -> Iterator[Finding]:
    """A Hugging Face token comes from a Secret, never from the manifest itself.

    Everyone who can read the manifest, the repository or the state can use the token. Variables of
    huggingface_hub are recognised by name, other tokens by their format. No message contains the
    token. A string in place of a token, such as `<your token>`, is allowed.

    Pass: 1 variable HF_TOKEN with valueFrom.secretKeyRef; HF_TOKEN with the value HF_TOKEN.
    Fail: HF_TOKEN with a value or from a ConfigMap; a command line with hf_ and 34 more letters.
    Level: mandatory.
    Source: huggingface_hub/constants.py; Kubernetes documentation, Good practices for Secrets.
    """
    yield from dict.fromkeys(f for pod in pods_of(engine) for f in _tokens(engine, pod))


def _tokens(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    for container in (*((pod.own,) if pod.own else ()), *pod.others):
        for token in container.tokens:
            yield _token(engine, container, token)
        if container.hidden_token is not None:
            hidden = container.hidden_token
            yield from cannot_check(engine, hidden, path=container.path)


def _token(engine: EngineFacts, container: ContainerFacts, token: TokenFacts) -> Finding:
    """Write the finding of a Hugging Face token that anyone who reads the manifest can see."""
    if token.kind is TokenKind.VALUE:
        seen = f"has {token.variable} in plain text"
        rest = ", and everyone who reads the manifest can use that token"
    elif token.kind is TokenKind.CONFIG_MAP:
        seen, rest = f"takes {token.variable} from a ConfigMap", ", which is not kept secret"
    else:
        where = "its command line" if token.variable is None else f"variable {token.variable}"
        seen = f"has a string in {where} that looks like a Hugging Face token (hf_…)"
        rest = ", and everyone who reads the manifest can use it"
    name = token.variable if token.kind is not TokenKind.PATTERN else "HF_TOKEN"
    return Finding(
        path=token.path,
        seen=f"{title(engine)}, container '{container.name}' {seen}{rest}",
        remedy=f"give {name} with valueFrom.secretKeyRef, and revoke this token",
    )


def config_map_key_exists(facts: ServingFacts) -> Iterator[Finding]:
    """A ConfigMap has every key that a pod uses, including its engine's config file.

    A name that no ConfigMap among the objects has is reported if it differs from one in a letter,
    or in two that are swapped. A missing key of a variable or a volume item keeps the container
    from starting; an engine without its config file exits at once. Other ConfigMaps that are not
    among the objects, or whose data is not known yet, are not checked here: the rules that need
    their values report it.

    Pass: --config /etc/vllm/tp8.yaml on a volume of a ConfigMap with the 1 key tp8.yaml.
    Fail: the same with the 1 key tp8.yml; configMapKeyRef key TP8 in a ConfigMap with the key tp8;
    envFrom with the ConfigMap chat-confg, and a ConfigMap chat-conf.
    Level: advisory.
    Source: kubernetes pkg/kubelet/kubelet_pods.go makeEnvironmentVariables and
    pkg/volume/configmap/configmap.go MakePayload.
    """
    for engine in facts.engines:
        found = dict.fromkeys(
            pair for pod in (engine.entry, engine.worker) if pod for pair in _missing(pod)
        )
        for path, because, meant in found:
            yield _finding(engine, path, because, meant)


def _missing(pod: PodFacts) -> Iterator[tuple[str, str, str]]:
    """Yield where a file is missing, why, and the name that may be meant."""
    for key in pod.missing:
        yield key.path, key.because, key.meant
    for because in pod.command.missing_files if pod.command else ():
        yield pod.command_path, because, ""


def _finding(engine: EngineFacts, path: str, because: str, meant: str) -> Finding:
    remedy = "add the key to the ConfigMap, or name one that it has"
    return Finding(
        path=path,
        seen=f"{title(engine)} does not start as it is written, because {because}",
        remedy=f"write '{meant}' as its name" if meant else remedy,
        level=Level.ADVISORY,
    )
