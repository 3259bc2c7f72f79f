"""The settings of a stack file, for comparing two states of it. Nothing is decrypted."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kthena_components.reading.project import Project, config_of, read_mapping

_CONFIG = "config"
_WHERE = ("kubeconfig", "context")
"""Settings of the stack program that say which cluster it talks to, and how it logs in."""
_SECRETS = ("secretsprovider", "encryptedkey", "environment")
"""Which service decrypts, and which environments of Pulumi's cloud are opened.

Source: pulumi sdk/go/common/workspace/project.go ProjectStack.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackValues:
    """What a stack file holds; empty for one that is not there."""

    own: Mapping[str, Any] = field(default_factory=dict)
    """The project's own settings, by key without its name."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Settings of providers and of Pulumi itself, by whole key."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside `config`."""

    def moved(self, before: "StackValues") -> list[str]:
        """Name the settings that send a preview elsewhere than before, or let it in elsewhere."""
        return [
            *_differing(self.beside, before.beside, _SECRETS),
            *_differing(self.own, before.own, _WHERE),
            *_differing(self.others, before.others, sorted({**self.others, **before.others})),
        ]

    def kubeconfigs(self) -> Iterator[str]:
        """Give each kubeconfig that it names: a path or the whole text. Encrypted ones are not."""
        for value in (self.own.get("kubeconfig"), self.others.get("kubernetes:kubeconfig")):
            if isinstance(value, str) and value:
                yield value
            elif isinstance(value, Mapping) and set(value) != {"secure"}:
                yield json.dumps(value) + "\n"


def read_stack_values(folder: Path, file: str, project: Project) -> StackValues:
    """Read a stack file of a project, with what the project adds to it.

    Raises:
        ProjectError: it cannot be read.
    """
    body = read_mapping(folder / file, folder)
    config = {**project.defaults, **config_of(body, project.name, file)}
    own = f"{project.name}:"
    return StackValues(
        own={key[len(own) :]: _plain(config[key]) for key in config if key.startswith(own)},
        others={key: config[key] for key in config if not key.startswith(own)},
        beside={str(key): body[key] for key in body if key != _CONFIG},
    )


def _plain(value: Any) -> Any:
    """Give a value its structure, which `pulumi config set` writes as text."""
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "{"))):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _differing(
    after: Mapping[str, Any], before: Mapping[str, Any], keys: tuple[str, ...] | list[str]
) -> list[str]:
    return [key for key in keys if after.get(key) != before.get(key)]
