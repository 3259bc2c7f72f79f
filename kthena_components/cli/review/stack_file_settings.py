"""Reads the settings of a stack file to compare two versions of it. It decrypts nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.plan.stack_file import OutputMode, StackSpec, structured
from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.project import (
    Project,
    ProjectError,
    config_of,
    config_text,
    is_encrypted,
    parse_mapping,
    shown,
)

_CONFIG = "config"
_KUBECONFIGS = ("kubeconfig",)
_WHERE = (*_KUBECONFIGS, "context", "output", "render_directory")
"""Settings of the stack program that select the cluster and the login, or the folder of files."""
_DEFAULTS = {"output": OutputMode.RENDER.value}
_PROVIDERS = ("kubernetes", "pulumi")
"""Namespaces that the provider or Pulumi reads, also if a project has such a name."""
_PROGRAM = frozenset(StackSpec.model_fields)
_BUDGET = "gpu_budget"
_MOST = 999_999_999
"""The largest budget that a review compares."""
_KUBECONFIG = "kubernetes:kubeconfig"
_ENGINE = "pulumi:"
"""Settings of the engine, which start no program."""
_STARTS_NOTHING = frozenset(
    f"kubernetes:{name}"
    for name in (
        "cluster", "clusterIdentifier", "context", "deleteUnreachable", "enableConfigMapMutable",
        "enableSecretMutable", "enableServerSideApply", "kubeClientSettings", "namespace",
        "rejectUnknownResources", "renderYamlToDirectory", "skipUpdateUnreachable", "strictMode",
        "suppressDeprecationWarnings", "suppressHelmHookWarnings",
    )
)  # fmt: skip
"""Settings of the Kubernetes provider that start no program and send nothing elsewhere.

Not kubeconfig, not helmReleaseSettings, which names plugins of Helm, and not pluginDownloadURL and
version, which are settings of every provider and choose the program of the provider itself.
Source: pulumi-kubernetes v4.25 provider/cmd/pulumi-resource-kubernetes/schema.json and
provider/pkg/provider/provider.go; Pulumi v3.259.0 pkg/resource/deploy/providers/registry.go,
GetProviderDownloadURL and GetProviderVersion.
"""
_SECRETS = ("secretsprovider", "encryptedkey", "environment")
"""Settings that select the secrets provider and the Pulumi ESC environments.

Source: pulumi sdk/go/common/workspace/project.go ProjectStack.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackValues:
    """The settings of a stack file. Empty if there is no file."""

    own: Mapping[str, Any] = field(default_factory=dict)
    """The project's own settings. The keys are without the project's name."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Settings of providers and of Pulumi itself, by full key.

    In a project that is called `kubernetes`, these are also its own settings that the stack program
    does not know.
    """
    beside: Mapping[str, Any] = field(default_factory=dict)
    """The other top-level keys of the file, without `config`."""

    def moved(self, before: "StackValues") -> list[str]:
        """List the changed settings that decide what a preview connects to, and its login."""
        return [
            *_differing(self.beside, before.beside, _SECRETS),
            *_differing({**_DEFAULTS, **self.own}, {**_DEFAULTS, **before.own}, _WHERE),
            *_differing(self.others, before.others, sorted({**self.others, **before.others})),
        ]

    def starting(self, before: "StackValues") -> list[str]:
        """List the changed settings that must not be used before a person has approved them.

        They may start programs that are not read here, or send secrets somewhere else: a preview
        sends objects to the API server for a dry run, with the secret values of the config. These
        are ESC environments, which set variables; the secrets provider; kubeconfigs; plugins of
        Helm; and the settings of other providers, which may name login programs and files.
        """
        others = sorted({**self.others, **before.others})
        strange = [
            key for key in others if key not in _STARTS_NOTHING and not key.startswith(_ENGINE)
        ]
        return [
            *_differing(self.beside, before.beside, _SECRETS),
            *_differing(self.own, before.own, _KUBECONFIGS),
            *_differing(self.others, before.others, strange),
        ]

    def kubeconfigs(self) -> Iterator[str]:
        """Yield each kubeconfig as a path or as text. Encrypted ones are left out."""
        for value in (self.own.get("kubeconfig"), self.others.get(_KUBECONFIG)):
            text = "" if is_encrypted(value) else config_text(value)
            if text:
                yield text


def stack_values(text: str, file: str, project: Project) -> StackValues:
    """Parse the text of a stack file with the defaults of its project.

    Args:
        text: The content of the file.
        file: Its name in messages; its suffix tells whether it is JSON.
        project: The project whose defaults apply.

    Raises:
        ProjectError: The text cannot be read.
    """
    body = parse_mapping(text, file)
    config = {**project.defaults, **config_of(body, project.name, file)}
    namespace = f"{project.name}:"
    own: dict[str, Any] = {}
    for key, value in config.items():
        if key.startswith(namespace):
            name = key.removeprefix(namespace)
            own[name] = _as_program(name, value, file)
    _require_count(own, file)
    return StackValues(
        own=own,
        others={
            key: value
            for key, value in config.items()
            if not key.startswith(namespace)
            or (project.name in _PROVIDERS and key.removeprefix(namespace) not in _PROGRAM)
        },
        beside={str(key): body[key] for key in body if key != _CONFIG},
    )


def _as_program(name: str, value: Any, file: str) -> Any:
    """Return a value as the stack program reads it. Encrypted values stay encrypted."""
    if is_encrypted(value):
        return value
    try:
        return structured(name, config_text(value))
    except RecursionError:
        raise ProjectError(f"{file}: {name} is nested too deeply to be read") from None


def _require_count(own: Mapping[str, Any], file: str) -> None:
    """Require a budget that can be compared: a review must not skip it."""
    stated = own.get(_BUDGET)
    if stated is None or (type(stated) is int and 0 <= stated <= _MOST):
        return
    seen = "encrypted" if is_encrypted(stated) else shown(stated)
    message = f"{_BUDGET} is {seen}, but must be a whole number from 0 to {_MOST:,}"
    raise ProjectError(f"{file}: {message}: write one as plain digits")


def _differing(
    after: Mapping[str, Any], before: Mapping[str, Any], keys: tuple[str, ...] | list[str]
) -> list[str]:
    return [key for key in keys if _text(after.get(key)) != _text(before.get(key))]


def _text(value: object) -> object:
    """Return a number or a truth value as the text that Pulumi makes of it.

    `pulumi stack init` and `pulumi config set` write these strings into the file.
    """
    return config_text(value) if isinstance(value, bool | int) else value
