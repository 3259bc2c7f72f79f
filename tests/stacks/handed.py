"""Stack files as Pulumi hands them to a program: text by key, JSON where there is structure."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kthena_components.core.findings import SpecError
from kthena_components.core.plan.stack_file import StackConfig
from kthena_components.resources.stack import load_stack
from tests.support.specs import changed

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "kthena-components"
STACKS = ("dev", "staging", "prod", "sandbox")
TOKEN = {"hf_token": "hf_token-of-the-test"}


def stack_file(stack: str) -> Path:
    """The committed file of a stack."""
    return ROOT / "stacks" / f"Pulumi.{stack}.yaml"


def written(stack: str) -> dict[str, Any]:
    """The values of a stack file, without the namespace of their keys."""
    config = yaml.safe_load(stack_file(stack).read_text())["config"]
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in config.items()}


def handed(
    stack: str, changes: Mapping[str, Any] | None = None, secrets: Mapping[str, str] | None = None
) -> StackConfig:
    """Give the config of a stack with some values changed, and with secret ones."""
    own = secrets if secrets is not None else (TOKEN if stack == "prod" else {})
    return config_of(stack, {**changed(written(stack), changes), **own}, frozenset(own))


def config_of(
    stack: str, values: Mapping[str, Any], secret_keys: frozenset[str] = frozenset()
) -> StackConfig:
    """Write values as Pulumi does."""
    return StackConfig(
        project=PROJECT,
        stack=stack,
        file=f"stacks/Pulumi.{stack}.yaml",
        values={key: _text(value) for key, value in values.items()},
        secret_keys=secret_keys,
    )


def refusal(config: StackConfig) -> list[str]:
    """The lines of a refusal below the one that counts them."""
    try:
        load_stack(config)
    except SpecError as error:
        head, *lines = str(error).splitlines()
        count = f"{len(lines)} problem{'s' if len(lines) > 1 else ''}"
        assert head == f"stack '{config.stack}' is refused, and nothing was changed: {count}"
        return [line.removeprefix(f"  {config.file}: {PROJECT}:") for line in lines]
    return []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
