"""What one container says beside its command: image, shared memory, and tokens written out.

Facts hold the place of a token and never the token itself.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Blank, MaybeText, Unknown, is_unresolved

SHM_PATH = "/dev/shm"  # noqa: S108 - the place that NCCL and Ray use

TOKEN_VARIABLES = frozenset(
    {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGING_FACE_TOKEN"}
)
"""Variables that hold a Hugging Face token, and nothing else.

Source: huggingface_hub/constants.py and the charts of serving systems.
"""

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])hf_(?!([A-Za-z0-9])\1{5})[A-Za-z0-9]{20,}")

_STAND_IN = re.compile(r"[A-Z][A-Z0-9_]*|<.*>|(?i:.*(?:token|your|x{3}|\.\.\.|…).*)")
"""What stands where a reader puts a token: `<your token>`, `HF_TOKEN`, `hf_xxx`. A token has lower
case letters and digits, and says nothing."""
_REFERENCE = re.compile(r"\$(?:\([^()]+\)|\{[^{}]+\}|[A-Za-z_][A-Za-z0-9_]*)")


class SharedMemory(StrEnum):
    """What stands at /dev/shm."""

    MEMORY = "memory"
    """A volume in memory, or the node's own."""
    DISK = "disk"
    """A volume that is no memory."""
    NOTHING = "nothing"
    """No volume: the runtime gives 64 MiB."""
    MISSING = "missing"
    """A mount of a volume that the pod does not have."""


class TokenKind(StrEnum):
    """How a token shows."""

    VALUE = "value"
    """As the value of the variable that is there for it."""
    CONFIG_MAP = "config-map"
    """The same, from a ConfigMap."""
    PATTERN = "pattern"
    """As text that looks like one, anywhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """A Hugging Face token outside a Secret. Its text is not kept."""

    path: str = field(compare=False)
    kind: TokenKind
    variable: str | None
    """The variable that holds it. None: it stands in the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container of a pod template."""

    path: str = field(compare=False)
    image_path: str = field(compare=False)
    name: str
    image: MaybeText | None
    shm: SharedMemory | Unknown
    tokens: tuple[TokenFacts, ...] = ()
    hidden_token: Unknown | None = None
    """Why there may be a token that cannot be seen now."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes of a pod by name: each of its containers asks for some."""

    named: Mapping[str, Mapping[str, Any]]
    """The first of each name."""
    late: bool
    """Whether there may be others, because a name is not known yet."""


def read_volumes(spec: Mapping[str, Any]) -> Volumes:
    """Read the volumes of a pod's spec, whatever is in them."""
    named: dict[str, Mapping[str, Any]] = {}
    late = is_unresolved(spec.get("volumes"))
    for item in sequence(spec.get("volumes")):
        name = mapping(item).get("name")
        late = late or is_unresolved(item) or is_unresolved(name)
        if isinstance(name, str):
            named.setdefault(name, mapping(item))
    return Volumes(named, late)


def read_container(
    container: Mapping[str, Any], spec: Mapping[str, Any], path: str, volumes: Volumes
) -> ContainerFacts:
    """Read one container of a pod's spec, whatever is in them."""
    image, name = container.get("image"), container.get("name")
    late = Unknown("the image is known only after the deployment")
    known = image if isinstance(image, str) and image else None
    named = name if isinstance(name, str) and not is_unresolved(name) else "?"
    return ContainerFacts(
        path=path,
        image_path=f"{path}.image",
        name=named,
        image=late if is_unresolved(image) else known,
        shm=_shared_memory(container, spec, volumes),
        tokens=(*_tokens_in_env(container, path), *_tokens_in_words(container, path)),
        hidden_token=_hidden_token(container, named),
    )


def written_for_role(facts: ContainerFacts, role_path: str, *, engine: bool) -> ContainerFacts:
    """Give a container that the package wrote the places of the user's own fields.

    Args:
        facts: the container.
        role_path: where the role stands.
        engine: whether it is the engine's container; others come from the overlay.
    """
    prefix = f"{role_path}." if role_path else ""
    overlay, extra = f"{prefix}overlay", f"{prefix}engine.extra_args"
    return replace(
        facts,
        path=overlay,
        image_path=f"{prefix}engine.image" if engine else overlay,
        tokens=tuple(
            replace(token, path=extra if engine and token.variable is None else overlay)
            for token in facts.tokens
        ),
    )


def _shared_memory(
    container: Mapping[str, Any], spec: Mapping[str, Any], volumes: Volumes
) -> SharedMemory | Unknown:
    if spec.get("hostIPC") is True:
        return SharedMemory.MEMORY
    mounts = container.get("volumeMounts")
    if is_unresolved(mounts) or any(map(is_unresolved, sequence(mounts))):
        return Unknown("the volume mounts are not known yet")
    places = (
        (mapping(mount).get("mountPath"), mapping(mount).get("name")) for mount in sequence(mounts)
    )
    name = next((v for at, v in places if isinstance(at, str) and _is_shm(at)), None)
    if name is None:
        late = any(is_unresolved(mapping(mount).get("mountPath")) for mount in sequence(mounts))
        return Unknown("a mount path is not known yet") if late else SharedMemory.NOTHING
    return _volume(name, volumes)


def _is_shm(path: str) -> bool:
    return path.rstrip("/") == SHM_PATH


def _volume(name: object, volumes: Volumes) -> SharedMemory | Unknown:
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
    for index, item in enumerate(sequence(container.get("env"))):
        name, value = mapping(item).get("name"), mapping(item).get("value")
        named = isinstance(name, str) and name in TOKEN_VARIABLES
        source = mapping(mapping(item).get("valueFrom"))
        variable, at = name if isinstance(name, str) else "?", f"{path}.env[{index}]"
        if named and _is_literal(value):
            yield TokenFacts(path=f"{at}.value", kind=TokenKind.VALUE, variable=variable)
        elif named and isinstance(source.get("configMapKeyRef"), Mapping):
            yield TokenFacts(path=f"{at}.valueFrom", kind=TokenKind.CONFIG_MAP, variable=variable)
        elif looks_like_token(value):
            yield TokenFacts(path=f"{at}.value", kind=TokenKind.PATTERN, variable=variable)


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
            if looks_like_token(word):
                at = f"{path}.{key}[{index}]"
                yield TokenFacts(path=at, kind=TokenKind.PATTERN, variable=None)


def looks_like_token(value: object) -> bool:
    """Tell whether a text holds something of the form that Hugging Face gives its tokens."""
    return isinstance(value, str) and "hf_" in value and _TOKEN.search(value) is not None


def _hidden_token(container: Mapping[str, Any], name: str) -> Unknown | None:
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
