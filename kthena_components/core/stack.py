"""What a stack file may say, and the rules that hold between its entries.

Servings stay as they were written: each is judged on its own, as the component does it. Where the
values come from, and what becomes of them, is in resources/stack.py.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kthena_components.core.findings import Finding, SpecError, suggest
from kthena_components.core.spec import Label, QueueSpec, Spec, Template, Text
from kthena_components.core.spec_parse import parse_spec
from kthena_components.core.topology import check_topology
from kthena_components.core.topology_spec import HyperNodeTopologySpec, is_dns_name

_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_SHARED_DEFAULT = "default"


class OutputMode(StrEnum):
    """Where the manifests go."""

    RENDER = "render"
    CLUSTER = "cluster"


class SecretSpec(Spec):
    """A Kubernetes Secret whose values come from secret config values of the stack."""

    name: Text
    namespace: Label = _SHARED_DEFAULT
    data: Annotated[dict[str, Text], Field(min_length=1)]
    """Config key that holds the value, by key of the Secret."""

    @property
    def title(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class StackSpec(Spec):
    """What one environment deploys, and where to."""

    output: Annotated[OutputMode, Field(strict=False)] = OutputMode.RENDER
    render_directory: Text | None = None
    kubeconfig: Text | None = None
    """A path; or the whole text of a kubeconfig, as a secret config value."""
    context: Text | None = None
    servings: list[Template] = []
    topology: HyperNodeTopologySpec | None = None
    queues: list[QueueSpec] = []
    secrets: list[SecretSpec] = []
    allow_plain_secrets: list[Text] = []

    def directory(self, stack: str) -> str:
        """Folder that manifests are rendered to."""
        return self.render_directory or f"rendered/{stack}"


_SCALARS = frozenset({"output", "render_directory", "kubeconfig", "context"})
_CONTENT = ("servings", "topology", "queues", "secrets")
_ONLY_FOR = {
    OutputMode.RENDER: ("render_directory", "allow_plain_secrets"),
    OutputMode.CLUSTER: ("kubeconfig", "context"),
}
_INSTEAD = {
    OutputMode.RENDER: "which writes files and talks to no cluster",
    OutputMode.CLUSTER: "which applies to a cluster and writes no files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """The config of one stack as Pulumi hands it to a program."""

    project: str
    """Namespace of the keys that are ours."""
    stack: str
    file: str
    """Where the values are written, for messages."""
    values: Mapping[str, str]
    """Text by key, without the namespace. What has structure in the file is JSON here."""
    secret_keys: frozenset[str]
    """Keys whose values are encrypted in the file."""

    def located(self, finding: Finding) -> Finding:
        """Give a finding the coordinates of the stack file."""
        return replace(finding, path=f"{self.file}: {self.project}:{finding.path}")

    def set_secret(self, key: str) -> str:
        """Write the command that sets a secret config value; it asks for the value."""
        return f"pulumi config set --secret {key} --stack {self.stack}"


def read_values(config: StackConfig) -> dict[str, Any]:
    """Give the values their structure back, without those that Secrets take by config key."""
    plain = {key: _structured(key, value) for key, value in config.values.items()}
    taken = {key for secret in _mappings(plain.get("secrets")) for key in _texts(secret.get("data"))}
    return {
        key: value
        for key, value in plain.items()
        if key in StackSpec.model_fields or key not in taken
    }


def parse_stack(values: Mapping[str, Any]) -> tuple[StackSpec, list[Finding]]:
    """Read what can be read, and say what cannot."""
    try:
        return parse_spec(StackSpec, values), []
    except SpecError as error:
        broken = {re.split(r"[.\[]", finding.path)[0] for finding in error.findings}
        rest = {key: value for key, value in values.items() if key not in broken}
        return parse_spec(StackSpec, rest), list(error.findings)


def check_stack(spec: StackSpec, config: StackConfig) -> list[Finding]:
    """Judge a stack by every rule that needs no serving's plan."""
    topology = check_topology(spec.topology) if spec.topology else []
    return [
        *_says_something(config),
        *_fields_for_output(spec),
        *_no_secret_outside_secrets(config),
        *_names_once(spec),
        *_parents_without_cycle(spec),
        *(finding.under("topology") for finding in topology),
        *_secrets(spec, config),
        *_rendered_secrets(spec, config),
    ]


def objects_once(made: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Finding]:
    """No two entries make the same Kubernetes object: the second would overwrite the first."""
    owners: dict[str, str] = {}
    for path, objects in made:
        clash = next((item for item in objects if owners.setdefault(item, path) != path), None)
        if clash is not None:
            yield Finding(
                path=path,
                seen=f"would make the {clash}, which {owners[clash]} makes too",
                remedy="rename one of the two, or give it another namespace",
                rule="object-twice",
            )


def parents_first(queues: Sequence[QueueSpec]) -> list[QueueSpec]:
    """Order queues so that each comes after the parent that the stack makes for it."""
    depth = {queue.name: len(_ancestors(queue, queues)) for queue in queues}
    return sorted(queues, key=lambda queue: depth[queue.name])


def _structured(key: str, text: str) -> Any:
    if key in _SCALARS:
        return text
    if not text:  # Pulumi hands over a key without a value as an empty text
        return {} if key == "topology" else []
    try:
        return json.loads(text)
    except ValueError:
        return text


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, Mapping)) if isinstance(
        value, list
    ) else ()


def _texts(value: object) -> Iterator[str]:
    yield from (item for item in value.values() if isinstance(item, str)) if isinstance(
        value, Mapping
    ) else ()


def _says_something(config: StackConfig) -> Iterator[Finding]:
    """A stack deploys something: a slip of indentation must not take everything down."""
    if not any(config.values.get(key) for key in _CONTENT):
        yield Finding(
            path="servings",
            seen=f"is missing, and so are {', '.join(_CONTENT[1:])}; an update would take down "
            "all that this stack has deployed",
            remedy=f"add servings, or run 'pulumi destroy --stack {config.stack}'",
            rule="stack-empty",
        )


def _fields_for_output(spec: StackSpec) -> Iterator[Finding]:
    """A field that the chosen output does not use is refused: somebody relies on it."""
    for mode, fields in _ONLY_FOR.items():
        for field in fields if mode is not spec.output else ():
            if getattr(spec, field):
                yield Finding(
                    path=field,
                    seen=f"is given, but output is {spec.output}, {_INSTEAD[spec.output]}",
                    remedy=f"remove it, or write output: {mode}",
                    rule="output-field",
                )


def _no_secret_outside_secrets(config: StackConfig) -> Iterator[Finding]:
    """Config that becomes manifests holds no secret value: it would stand there in plain text."""
    for key in sorted(config.secret_keys & set(StackSpec.model_fields) - {"kubeconfig"}):
        yield Finding(
            path=key,
            seen="holds a secret value, which would stand in plain text in what it describes",
            remedy="give the value a config key of its own, name that key in secrets, and refer "
            "to the Secret",
            rule="secret-in-config",
        )


def _names_once(spec: StackSpec) -> Iterator[Finding]:
    """Each serving, queue and Secret is written once."""
    titles = {
        "servings": [_serving_title(serving) for serving in spec.servings],
        "queues": [queue.name for queue in spec.queues],
        "secrets": [secret.title for secret in spec.secrets],
    }
    for field, listed in titles.items():
        for index, title in enumerate(listed):
            first = listed.index(title)
            if title and first != index:
                yield Finding(
                    path=f"{field}[{index}].name",
                    seen=f"'{title}' is already the name of {field}[{first}]",
                    remedy="remove or rename one of the two",
                    rule="name-once",
                )


def _serving_title(serving: Template) -> str:
    name, namespace = serving.get("name"), serving.get("namespace", _SHARED_DEFAULT)
    return f"{namespace}/{name}" if isinstance(name, str) else ""


def _ancestors(queue: QueueSpec, queues: Sequence[QueueSpec]) -> list[str]:
    """List the queues above one, as far as the stack makes them, ending where a cycle closes."""
    parents = {item.name: item.parent for item in queues}
    above: list[str] = []
    parent = queue.parent
    while parent in parents and parent not in above:
        above.append(str(parent))
        parent = parents[parent]
    return above


def _parents_without_cycle(spec: StackSpec) -> Iterator[Finding]:
    for index, queue in enumerate(spec.queues):
        above = _ancestors(queue, spec.queues)
        if queue.name in above:
            chain = " -> ".join([queue.name, *above[: above.index(queue.name) + 1]])
            yield Finding(
                path=f"queues[{index}].parent",
                seen=f"the parents go in a cycle, {chain}, and Volcano makes a queue after its parent",
                remedy="remove the parent of one of them",
                rule="queue-cycle",
            )


def _secrets(spec: StackSpec, config: StackConfig) -> Iterator[Finding]:
    """Each value of a Secret is a config value, and encrypted in the stack file."""
    for index, secret in enumerate(spec.secrets):
        if not is_dns_name(secret.name):
            yield Finding(
                path=f"secrets[{index}].name",
                seen=f"is '{secret.name}', but must be lower-case letters, digits, dashes and dots",
                remedy="change it",
                rule="pattern",
            )
        for key, source in secret.data.items():
            yield from _secret_value(f"secrets[{index}].data.{key}", key, source, config)


def _secret_value(path: str, key: str, source: str, config: StackConfig) -> Iterator[Finding]:
    seen, rule, remedy = "", "", f"run '{config.set_secret(source)}'"
    if not _SECRET_KEY.fullmatch(key):
        seen, rule = f"'{key}' is no key of a Secret: letters, digits, '-', '_' and '.'", "pattern"
        remedy = "change it"
    elif source in StackSpec.model_fields:
        seen, rule = f"'{source}' is a field of the stack, not a value of its own", "secret-missing"
        remedy = "write another config key, such as hf_token"
    elif not config.values.get(source):
        seen, rule = f"there is no config value '{source}'", "secret-missing"
    elif source not in config.secret_keys:
        seen, rule = f"the config value '{source}' is in plain text", "secret-in-plain-text"
        remedy += ", and revoke the old value if anybody else could read the file"
    if seen:
        yield Finding(path=path, seen=seen, remedy=remedy, rule=rule)


def _rendered_secrets(spec: StackSpec, config: StackConfig) -> Iterator[Finding]:
    """No Secret is written to a file unless the stack says so: a file keeps nothing secret."""
    names = sorted({secret.name for secret in spec.secrets})
    for index, name in enumerate(spec.allow_plain_secrets):
        if name not in names:
            yield Finding(
                path=f"allow_plain_secrets[{index}]",
                seen=f"there is no Secret '{name}' in secrets",
                remedy=suggest(name, names) if names else "remove it",
                rule="known-value",
            )
    if spec.output is OutputMode.CLUSTER:
        return
    for index, secret in enumerate(spec.secrets):
        if secret.name not in spec.allow_plain_secrets:
            file = f"v1-secret-{secret.namespace}-{secret.name}.yaml"
            yield Finding(
                path=f"secrets[{index}]",
                seen=f"Secret '{secret.title}' would be written in plain text to "
                f"{spec.directory(config.stack)}/1-manifest/{file}",
                remedy=f"write output: cluster, or add {secret.name} to allow_plain_secrets and "
                "keep that file out of version control",
                rule="secret-rendered",
            )
