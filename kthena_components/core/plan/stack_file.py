"""The schema of a stack file, and the rules between its entries.

Servings are not checked here: the component checks each of them. resources/stack.py provides the
values and deploys them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kthena_components.core.findings import Finding, SpecError, count_of
from kthena_components.core.hardware import NO_CHOICE, GpuChoice, parse_choice
from kthena_components.core.remedies import either, remove
from kthena_components.core.spec.fields import Count, Label, Spec, Text
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import QueueSpec
from kthena_components.core.templates import Template
from kthena_components.core.topology.spec import HyperNodeTopologySpec, check_topology
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import DEFAULT_NAMESPACE
from kthena_components.core.values.unknown import Unknown


class OutputMode(StrEnum):
    """Where manifests are sent."""

    RENDER = "render"
    CLUSTER = "cluster"


class SecretSpec(Spec):
    """A Kubernetes Secret whose values come from secret config values of the stack."""

    name: Text
    namespace: Label = DEFAULT_NAMESPACE
    data: Annotated[dict[str, Text], Field(min_length=1)]
    """Config key that holds the value, by key of the Secret."""

    @property
    def title(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class StackSpec(Spec):
    """What one environment deploys, and where."""

    output: Annotated[OutputMode, Field(strict=False)] = OutputMode.RENDER
    render_directory: Text | None = None
    kubeconfig: Text | None = Field(default=None, repr=False)
    """A path, or the whole text of a kubeconfig as a secret config value."""
    context: Text | None = None
    servings: list[Template] = Field(default_factory=list)
    topology: HyperNodeTopologySpec | None = None
    queues: list[QueueSpec] = Field(default_factory=list)
    secrets: list[SecretSpec] = Field(default_factory=list)
    gpu_budget: Count | None = None
    """Maximum GPUs that all servings together may request; no limit if left out."""
    gpu: Text | None = None
    """GPU of the pods whose templates name none: h200, or h100, POOL=h200."""
    allow_plain_secrets: list[Text] = Field(default_factory=list)

    @property
    def gpus(self) -> GpuChoice:
        """The GPUs that `gpu` names; none if it is wrong, which is a finding."""
        choice = parse_choice([self.gpu] if self.gpu else [])
        return choice if isinstance(choice, GpuChoice) else NO_CHOICE

    def directory(self, stack: str) -> str:
        """Folder that manifests are rendered to."""
        return self.render_directory or f"rendered/{stack}"


_SETTINGS = frozenset({"output", "render_directory", "kubeconfig", "context", "gpu"})
"""Fields with plain text; all others are structured."""
_CONTENT = ("servings", "topology", "queues", "secrets")
_ONLY_FOR = {
    OutputMode.RENDER: ("render_directory", "allow_plain_secrets"),
    OutputMode.CLUSTER: ("kubeconfig", "context"),
}
_INSTEAD = {
    OutputMode.RENDER: "which writes files and connects to no cluster",
    OutputMode.CLUSTER: "which applies to a cluster and writes no files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """The config of one stack as Pulumi passes it to a program."""

    project: str
    """Namespace of our keys."""
    stack: str
    file: str
    """Name of the file with the values, for messages."""
    values: Mapping[str, str] = field(repr=False)
    """Text by key, without the namespace. Structured values are JSON here."""
    secret_keys: frozenset[str]
    """Keys whose values are encrypted in the file."""

    def located(self, finding: Finding) -> Finding:
        """Add the stack file to a finding's path."""
        return replace(finding, path=f"{self.file}: {self.project}:{finding.path}")


def read_values(config: StackConfig) -> dict[str, Any]:
    """Restore the structure of fields, without the sources of Secrets.

    Unknown keys are kept and reported later.
    """
    plain = {key: structured(key, value) for key, value in config.values.items()}
    taken = set(_sources(plain.get("secrets"))) - set(StackSpec.model_fields)
    return {key: value for key, value in plain.items() if key not in taken}


def structured(key: str, text: str) -> Any:
    """Restore the structure of one value.

    Args:
        key: Its key, without the namespace.
        text: The value as Pulumi passes it.
    """
    if key in _SETTINGS:
        return text
    if not text:  # Pulumi passes a key without a value as an empty string
        return {} if key == "topology" else []
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_stack(values: Mapping[str, Any]) -> tuple[StackSpec, list[Finding]]:
    """Parse a stack, and report what cannot be parsed."""
    try:
        spec = parse_spec(StackSpec, values)
        return spec, list(_says_something(spec))
    except SpecError as error:
        broken = {re.split(r"[.\[]", finding.path)[0] for finding in error.findings}
        # An unknown key may contain dots, and is reported in any case.
        known = StackSpec.model_fields.keys() - broken
        rest = {key: value for key, value in values.items() if key in known}
        return parse_spec(StackSpec, rest), list(error.findings)


def check_stack(spec: StackSpec, config: StackConfig) -> list[Finding]:
    """Check a stack by every rule that needs no serving's plan."""
    topology = check_topology(spec.topology) if spec.topology else []
    return [
        *_fields_for_output(spec),
        *_no_secret_outside_secrets(config),
        *_names_once(spec),
        *_gpu_known(spec),
        *(finding.under("topology") for finding in topology),
    ]


def objects_once(made: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Finding]:
    """No two entries create the same Kubernetes object: the second would overwrite the first."""
    owners: dict[str, str] = {}
    for path, objects in made:
        clash = next((item for item in objects if owners.setdefault(item, path) != path), None)
        if clash is not None:
            yield Finding(
                path=path,
                seen=f"would create the {clash}, which {owners[clash]} also creates",
                remedy="rename one of the two, or give it another namespace",
                rule="object-twice",
            )


def within_budget(spec: StackSpec, gpus: Sequence[int | None]) -> Iterator[Finding]:
    """The GPUs of all servings are within the stack's budget; None is an unknown count."""
    used = sum(number for number in gpus if number is not None)
    if spec.gpu_budget is not None and used > spec.gpu_budget:
        least = "at least " if None in gpus else ""
        yield Finding(
            path="gpu_budget",
            seen=f"is {spec.gpu_budget}, but the servings of this stack request {least}"
            f"{count_of(used, 'GPU')}",
            remedy=f"request {used - spec.gpu_budget} fewer, or write {used}",
            rule="gpu-budget",
        )


def _gpu_known(spec: StackSpec) -> Iterator[Finding]:
    """The GPU of a stack is one of the table."""
    choice = parse_choice([spec.gpu] if spec.gpu else [])
    if isinstance(choice, Unknown):
        yield Finding(
            path="gpu",
            seen=f"cannot be used: {choice.because}",
            remedy="write a name such as h200, or remove it",
            rule="gpu-known",
        )


def is_kubeconfig_text(kubeconfig: str | None) -> bool:
    """Return whether a kubeconfig is its whole text, as YAML or JSON, and not a path."""
    return kubeconfig is not None and ("\n" in kubeconfig or kubeconfig.lstrip().startswith("{"))


def parents_first(queues: Sequence[QueueSpec]) -> list[QueueSpec]:
    """Sort queues so that each comes after the parent that the stack creates."""
    depth = {queue.name: len(_ancestors(queue, queues)) for queue in queues}
    return sorted(queues, key=lambda queue: depth[queue.name])


def _sources(secrets: object) -> Iterator[str]:
    """Find the config keys that Secrets name, in a value that is not checked yet."""
    for secret in secrets if isinstance(secrets, list) else ():
        data = secret.get("data") if isinstance(secret, Mapping) else None
        for source in data.values() if isinstance(data, Mapping) else ():
            if isinstance(source, str):
                yield source


def _says_something(spec: StackSpec) -> Iterator[Finding]:
    """A stack deploys something: an indentation mistake must not delete everything."""
    if not any(getattr(spec, field) for field in _CONTENT):
        yield Finding(
            path="servings",
            seen="is empty, and so are topology, queues and secrets; an update would delete all "
            "that this stack has deployed",
            remedy="add servings, or run 'pulumi destroy'",
            rule="stack-empty",
        )


def _fields_for_output(spec: StackSpec) -> Iterator[Finding]:
    """Every field has an effect with the chosen output."""
    for mode, fields in _ONLY_FOR.items():
        for name in fields if mode is not spec.output else ():
            if getattr(spec, name):
                yield Finding(
                    path=name,
                    seen=f"is given, but output is {spec.output}, {_INSTEAD[spec.output]}",
                    remedy=either(remove(), f"write output: {mode}"),
                    rule="output-field",
                )


def _no_secret_outside_secrets(config: StackConfig) -> Iterator[Finding]:
    """Config that becomes manifests contains no secret value: it would be plain text there."""
    for key in sorted(config.secret_keys & set(StackSpec.model_fields) - {"kubeconfig"}):
        yield Finding(
            path=key,
            seen="contains a secret value, which would be plain text in the manifests",
            remedy="give the value its own config key, name that key in secrets, and use "
            "that Secret by secretKeyRef",
            rule="secret-in-config",
        )
    if (
        is_kubeconfig_text(config.values.get("kubeconfig"))
        and "kubeconfig" not in config.secret_keys
    ):
        yield Finding(
            path="kubeconfig",
            seen="contains a whole kubeconfig in plain text, with the credentials for the cluster",
            remedy=f"run 'pulumi config set --secret kubeconfig --stack {config.stack} < FILE', "
            "or write a path",
            rule="secret-in-plain-text",
        )


def _names_once(spec: StackSpec) -> Iterator[Finding]:
    """Each serving, queue and Secret is defined once."""
    titles = {
        "servings": [_serving_title(serving) for serving in spec.servings],
        "queues": [queue.name for queue in spec.queues],
        "secrets": [secret.title for secret in spec.secrets],
    }
    for key, listed in titles.items():
        for index, title in enumerate(listed):
            first = listed.index(title)
            if title and first != index:
                yield Finding(
                    path=f"{key}[{index}].name",
                    seen=f"'{title}' is already the name of {key}[{first}]",
                    remedy="remove or rename one of the two",
                    rule="name-once",
                )


def _serving_title(serving: Template) -> str:
    name, namespace = serving.get("name"), serving.get("namespace", DEFAULT_NAMESPACE)
    return f"{namespace}/{name}" if isinstance(name, str) else ""


def _ancestors(queue: QueueSpec, queues: Sequence[QueueSpec]) -> list[str]:
    """List the ancestors of a queue that the stack creates; stops where a cycle closes."""
    parents = {item.name: item.parent for item in queues}
    above: list[str] = []
    parent = queue.parent
    while parent in parents and parent not in above:
        above.append(str(parent))
        parent = parents[parent]
    return above
