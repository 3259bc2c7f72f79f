"""Reads a container besides its command: image, shared memory, and the paths of its tokens."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from kthena_components.core.engines.facts import ALL_GPUS
from kthena_components.core.engines.files import Files
from kthena_components.core.facts.claims import NO_CLAIMS, ContainerClaims
from kthena_components.core.facts.ports import (
    NO_PORTS,
    PortFacts,
    at_overlay,
    read_ports,
    read_waits,
)
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import looks_like_token
from kthena_components.core.values.quantity import is_accelerator, parse_quantity
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    Blank,
    MaybeInt,
    MaybeText,
    Unknown,
    is_unresolved,
    total,
)

SHM_PATH = "/dev/shm"  # noqa: S108 - the place that NCCL and Ray use

TOKEN_VARIABLES = frozenset(
    {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGING_FACE_TOKEN"}
)
"""Variables that contain a Hugging Face token, and nothing else.

Source: huggingface_hub/constants.py and the charts of serving systems.
"""

_LATE_IMAGE = Unknown("the image is known only after the deployment")

_STAND_IN = regex(
    r"[A-Z][A-Z0-9_]*|<.*>|.*\s.*|hf_[^A-Za-z0-9]*|(?i:.*(?:token|your|x{3}|\.\.\.|…).*)"
    r"|(?i:(?:add|enter|insert|paste|put)[-_]?(?:the|a|my)?[-_]?(?:hf)?[-_]?key.*)"
)
"""Strings in place of a token: `<your token>`, `HF_TOKEN`, `hf_xxx`, `hf_`, `add key`. A real token
has random letters and digits."""
_REFERENCE = regex(r"\$(?:\([^()]+\)|\{[^{}]+\}|[A-Za-z_][A-Za-z0-9_]*)")


class SharedMemory(StrEnum):
    """The kind of volume that is mounted at /dev/shm."""

    MEMORY = "memory"
    """A volume in memory, or the node's own."""
    DISK = "disk"
    """A volume on disk."""
    NOTHING = "nothing"
    """No volume: the runtime's default is 64 MiB."""
    MISSING = "missing"
    """A mount of a volume that is missing in the pod."""
    FIXED = "fixed"
    """Nothing, in pods that a controller writes from an object without a field for volumes."""


class TokenKind(StrEnum):
    """Where a token was found."""

    VALUE = "value"
    """As the value of a variable for tokens, such as HF_TOKEN."""
    CONFIG_MAP = "config-map"
    """As the value of such a variable, from a ConfigMap."""
    PATTERN = "pattern"
    """As text that looks like a token, anywhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """A Hugging Face token outside a Secret. Its text is not kept."""

    path: str = field(compare=False)
    kind: TokenKind
    variable: str | None
    """The variable that contains it. None: it is in the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container of a pod template."""

    path: str = field(compare=False)
    image_path: str = field(compare=False)
    name: str
    image: MaybeText | None
    shm: SharedMemory | Unknown
    shm_limit: MaybeInt | None = None
    """Bytes that the volume at /dev/shm may hold. None: not stated, or it is not in memory."""
    shm_path: str = field(default="", compare=False)
    """Path of that limit."""
    memory_limit: MaybeInt | None = None
    """Bytes of memory that the container may use. None: not stated."""
    tokens: tuple[TokenFacts, ...] = ()
    serves: bool = False
    """Whether it is an init container that starts an engine, which does not end."""
    stays: bool = field(default=False, compare=False)
    """Whether it is a sidecar: an init container with restartPolicy Always."""
    unread: Unknown | None = field(default=None, compare=False)
    """Why its command line or variables may state ports that `ports` lacks. Only for sidecars."""
    hidden_token: Unknown | None = None
    """Why there may be a token that cannot be read now."""
    ports: PortFacts = field(default=NO_PORTS, compare=False)
    waits: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False)
    """Hosts and ports that its script asks until they answer."""
    has_other_inputs: bool = False
    """Whether a hook may start other programs in it, or it has variables that are not read."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes of a pod by name, shared by its containers."""

    named: Mapping[str, Mapping[str, Any]]
    """The first of each name."""
    places: Mapping[str, int]
    """Its index among all."""
    late: bool
    """Whether others may exist, because a name is not known yet."""


def read_volumes(spec: Mapping[str, Any]) -> Volumes:
    """Read the volumes of a pod's spec, whatever they contain."""
    named: dict[str, Mapping[str, Any]] = {}
    places: dict[str, int] = {}
    late = is_unresolved(spec.get("volumes"))
    for index, item in enumerate(sequence(spec.get("volumes"))):
        name = mapping(item).get("name")
        late = late or is_unresolved(item) or is_unresolved(name)
        if isinstance(name, str):
            named.setdefault(name, mapping(item))
            places.setdefault(name, index)
    return Volumes(named, places, late)


def sidecars(spec: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the init containers that run as long as the pod, each with its path."""
    for index, item in enumerate(sequence(spec.get("initContainers"))):
        if mapping(item).get("restartPolicy") == "Always":
            yield mapping(item), join_path(path, f"spec.initContainers[{index}]")


def visible_gpus(container: Mapping[str, Any], claims: ContainerClaims = NO_CLAIMS) -> MaybeInt:
    """Return the GPUs that NVIDIA's driver shows the process of a container; at least 1."""
    resources = mapping(container.get("resources"))
    lists = [resources.get(key) for key in ("limits", "requests")]
    if gap := first_unknown(container.get("resources"), *lists):
        return gap
    stated = {**mapping(lists[1]), **mapping(lists[0])}
    named = {str(key): amount for key, amount in stated.items() if is_accelerator(str(key))}
    claimed = [each.asked for each in claims.devices]
    names = (*named, *(asked.resource for asked in claimed))
    if not all(name.startswith("nvidia.com/") for name in names):
        return ALL_GPUS
    if not names and claims.gap is not None:
        return claims.gap
    amounts = [parse_quantity(amount) for amount in named.values()]
    if any(amount is None for amount in amounts):
        return Unknown("the number of its GPUs is not known yet")
    more = total(asked.count for asked in claimed)
    return more if isinstance(more, Unknown) else max(int(sum(filter(None, amounts))) + more, 1)


def read_container(
    container: Mapping[str, Any],
    spec: Mapping[str, Any],
    path: str,
    volumes: Volumes,
    files: Files = (),
) -> ContainerFacts:
    """Read one container of a pod's spec, whatever it contains."""
    image, name = container.get("image"), container.get("name")
    limit, shm_path = _shm_limit(container, volumes, path)
    known = image if isinstance(image, str) and image else None
    beside = container.get("lifecycle"), container.get("envFrom")
    named = name if isinstance(name, str) and not is_unresolved(name) else "?"
    return ContainerFacts(
        path=path,
        image_path=f"{path}.image",
        name=named,
        image=_LATE_IMAGE if is_unresolved(image) else known,
        shm=_shared_memory(container, spec, volumes),
        shm_limit=limit,
        shm_path=shm_path,
        memory_limit=_memory_limit(container),
        tokens=(*_tokens_in_env(container, path), *_tokens_in_words(container, path)),
        hidden_token=_hidden_token(container, named),
        ports=read_ports(container, spec, path, files),
        waits=read_waits(container),
        has_other_inputs=beside != (None, None) or is_unresolved(container.get("env")),
    )


def written_for_role(facts: ContainerFacts, role_path: str, *, engine: bool) -> ContainerFacts:
    """Replace the paths in a container that the package wrote by the paths of the user's fields.

    Args:
        engine: Whether it is the engine's container; others come from the overlay.
    """
    prefix = f"{role_path}." if role_path else ""
    overlay, extra = f"{prefix}overlay", f"{prefix}engine.extra_args"
    return replace(
        facts,
        path=overlay,
        image_path=f"{prefix}engine.image" if engine else overlay,
        shm_path=f"{prefix}resources.shm" if engine else overlay,
        ports=at_overlay(facts.ports, overlay),
        tokens=tuple(
            replace(token, path=extra if engine and token.variable is None else overlay)
            for token in facts.tokens
        ),
    )


def _shared_memory(
    container: Mapping[str, Any], spec: Mapping[str, Any], volumes: Volumes
) -> SharedMemory | Unknown:
    """Find out what is mounted at /dev/shm; the pod's hostIPC gives it the memory of the node."""
    if spec.get("hostIPC") is True:
        return SharedMemory.MEMORY
    mounts = container.get("volumeMounts")
    if is_unresolved(mounts) or any(map(is_unresolved, sequence(mounts))):
        return Unknown("the volume mounts are not known yet")
    places = (
        (mapping(mount).get("mountPath"), mapping(mount).get("name")) for mount in sequence(mounts)
    )
    name = next((v for at, v in places if isinstance(at, str) and _is_shm(at)), None)
    if name is None and (gap := unknown_in(spec.get("hostIPC"))):
        return gap
    if name is None:
        late = any(is_unresolved(mapping(mount).get("mountPath")) for mount in sequence(mounts))
        return Unknown("a mount path is not known yet") if late else SharedMemory.NOTHING
    return _volume(name, volumes)


def _shm_limit(
    container: Mapping[str, Any], volumes: Volumes, path: str
) -> tuple[MaybeInt | None, str]:
    """Return how much the volume at /dev/shm may hold, and the path of the field."""
    names = [
        mapping(mount).get("name")
        for mount in sequence(container.get("volumeMounts"))
        if isinstance(at := mapping(mount).get("mountPath"), str) and _is_shm(at)
    ]
    name = names[0] if names else None
    if not isinstance(name, str) or name not in volumes.named:
        return None, ""
    held, pod = mapping(volumes.named[name].get("emptyDir")), path.rpartition(".containers[")[0]
    at = f"{pod}.volumes[{volumes.places[name]}].emptyDir.sizeLimit"
    return _bytes(held.get("sizeLimit") if held.get("medium") == "Memory" else None), at


def _memory_limit(container: Mapping[str, Any]) -> MaybeInt | None:
    return _bytes(mapping(mapping(container.get("resources")).get("limits")).get("memory"))


def _bytes(stated: object) -> MaybeInt | None:
    if is_unresolved(stated):
        return Unknown("the amount of memory is not known yet")
    amount = parse_quantity(stated)
    return None if amount is None else int(amount)


def _is_shm(path: str) -> bool:
    return path.rstrip("/") == SHM_PATH


def _volume(name: object, volumes: Volumes) -> SharedMemory | Unknown:
    """Find out whether a volume keeps files in memory: an emptyDir of Memory, or /dev/shm."""
    found = volumes.named.get(name) if isinstance(name, str) and not is_unresolved(name) else None
    if found is None:
        late = is_unresolved(name) or volumes.late
        return Unknown("the volumes are not known yet") if late else SharedMemory.MISSING
    empty, host = found.get("emptyDir"), mapping(found.get("hostPath")).get("path")
    medium = mapping(empty).get("medium")
    if any(map(is_unresolved, (empty, medium, host))):
        return Unknown(f"what the volume at {SHM_PATH} is, is not known yet")
    memory = medium == "Memory" or (isinstance(host, str) and _is_shm(host))
    return SharedMemory.MEMORY if memory else SharedMemory.DISK


def _tokens_in_env(container: Mapping[str, Any], path: str) -> Iterator[TokenFacts]:
    """List variables whose value is a Hugging Face token, by their name or by the form hf_…."""
    for index, item in enumerate(map(mapping, sequence(container.get("env")))):
        name, value, kind = item.get("name"), item.get("value"), None
        if isinstance(name, str) and name in TOKEN_VARIABLES:
            kind = _kind_of_token(value, item.get("valueFrom"))
        if kind is None and looks_like_token(value):
            kind = TokenKind.PATTERN
        if kind is not None:
            at = f"{path}.env[{index}].{'valueFrom' if kind is TokenKind.CONFIG_MAP else 'value'}"
            variable = name if isinstance(name, str) else "?"
            yield TokenFacts(path=at, kind=kind, variable=variable)


def _kind_of_token(value: object, source: object) -> TokenKind | None:
    """Return how a variable for tokens shows its token; None if it does not."""
    if _is_literal(value):
        return TokenKind.VALUE
    from_map = isinstance(mapping(source).get("configMapKeyRef"), Mapping)
    return TokenKind.CONFIG_MAP if from_map else None


def _is_literal(value: object) -> bool:
    if not isinstance(value, str) or is_unresolved(value):
        return False
    text = value.strip()
    if looks_like_token(text):
        return True
    return text != "" and not any(known.fullmatch(text) for known in (_REFERENCE, _STAND_IN))


def _tokens_in_words(container: Mapping[str, Any], path: str) -> Iterator[TokenFacts]:
    for key in ("command", "args"):
        for index, word in enumerate(sequence(container.get(key))):
            if isinstance(word, str) and "hf_" in word and looks_like_token(word):
                at = f"{path}.{key}[{index}]"
                yield TokenFacts(path=at, kind=TokenKind.PATTERN, variable=None)


def _hidden_token(container: Mapping[str, Any], name: str) -> Unknown | None:
    """Return why a container may have a token that is not visible yet; None if all is visible."""
    env = container.get("env")
    if is_unresolved(env) or any(map(is_unresolved, sequence(env))):
        return Unknown(f"the variables of container '{name}' are not known yet")
    for item in map(mapping, sequence(env)):
        variable, sources = item.get("name"), (item.get("value"), item.get("valueFrom"))
        named = isinstance(variable, str) and variable in TOKEN_VARIABLES
        if named and any(is_unresolved(each) and not isinstance(each, Blank) for each in sources):
            return Unknown(f"the value of {variable} is not known yet")
        if is_unresolved(variable) and "secretKeyRef" not in mapping(item.get("valueFrom")):
            return Unknown(f"the name of a variable of container '{name}' is not known yet")
    return None
