"""Reads the settings of a stack file to compare two versions of it. It decrypts nothing."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kthena_components.reading.project import Project, config_of, parse_mapping, read_mapping

_CONFIG = "config"
_WHERE = ("kubeconfig", "context")
"""Settings of the stack program that select the cluster and the login."""
_KUBECONFIG = "kubernetes:kubeconfig"
_READ = ("kubernetes", "pulumi")
"""Namespaces of settings that start no program, apart from the ones below."""
_PLUGINS = ("kubernetes:helmReleaseSettings",)
"""Source: pulumi-kubernetes provider/pkg/provider/provider.go, pluginsPath."""
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
    """Settings of providers and of Pulumi itself, by full key."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """The other top-level keys of the file, without `config`."""

    def moved(self, before: "StackValues") -> list[str]:
        """List the changed settings that decide what a preview connects to, and its login."""
        return [
            *_differing(self.beside, before.beside, _SECRETS),
            *_differing(self.own, before.own, _WHERE),
            *_differing(self.others, before.others, sorted({**self.others, **before.others})),
        ]

    def starting(self, before: "StackValues") -> list[str]:
        """List the changed settings that may start programs, and that are not read here.

        These are ESC environments, which set variables; the settings of other providers, which may
        name login programs and files with them; plugins of Helm; and encrypted kubeconfigs.
        """
        others = sorted({**self.others, **before.others})
        strange = [key for key in others if key.partition(":")[0] not in _READ or key in _PLUGINS]
        sealed = [key for key in others if key == _KUBECONFIG and _is_sealed(self.others.get(key))]
        own = [key for key in _WHERE[:1] if _is_sealed(self.own.get(key))]
        return [
            *_differing(self.beside, before.beside, _SECRETS[-1:]),
            *_differing(self.own, before.own, own),
            *_differing(self.others, before.others, [*sealed, *strange]),
        ]

    def kubeconfigs(self) -> Iterator[str]:
        """Yield each kubeconfig as a path or as text. Encrypted ones are left out."""
        for value in (self.own.get("kubeconfig"), self.others.get("kubernetes:kubeconfig")):
            if isinstance(value, str) and value:
                yield value
            elif isinstance(value, Mapping) and set(value) != {"secure"}:
                yield json.dumps(value) + "\n"


def read_stack_values(folder: Path, file: str, project: Project) -> StackValues:
    """Read a stack file of a folder with the defaults of its project.

    Raises:
        ProjectError: The file cannot be read.
    """
    return _values_of(read_mapping(folder / file, folder), file, project)


def stack_values(text: str, file: str, project: Project) -> StackValues:
    """Parse the text of a stack file with the defaults of its project.

    Args:
        text: The content of the file.
        file: Its name in messages; its suffix tells whether it is JSON.
        project: The project whose defaults apply.

    Raises:
        ProjectError: The text cannot be read.
    """
    return _values_of(parse_mapping(text, file), file, project)


def _values_of(body: Mapping[str, Any], file: str, project: Project) -> StackValues:
    config = {**project.defaults, **config_of(body, project.name, file)}
    own = f"{project.name}:"
    return StackValues(
        own={key[len(own) :]: _plain(config[key]) for key in config if key.startswith(own)},
        others={key: config[key] for key in config if not key.startswith(own)},
        beside={str(key): body[key] for key in body if key != _CONFIG},
    )


def _plain(value: Any) -> Any:
    """Parse a structured value that `pulumi config set` has written as text."""
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "{"))):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _is_sealed(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _differing(
    after: Mapping[str, Any], before: Mapping[str, Any], keys: tuple[str, ...] | list[str]
) -> list[str]:
    return [key for key in keys if after.get(key) != before.get(key)]
