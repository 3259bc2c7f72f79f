"""Read a stack file of a project without Pulumi, for what its servings need of a cluster."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kthena_components.backends.compiler import Compiled, compile_serving
from kthena_components.backends.queues import judge_queues
from kthena_components.cluster.need import Need, need_of_stack
from kthena_components.core.findings import Finding, Level, SpecError, suggest
from kthena_components.core.stack import (
    OutputMode,
    StackConfig,
    StackSpec,
    check_stack,
    is_kubeconfig_text,
    parse_stack,
    read_values,
)

_SECURE = "secure"


class StackFileError(Exception):
    """A stack that cannot be looked at. Its text is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStack:
    """A stack, and what was found in it."""

    need: Need
    spec: StackSpec
    refusals: tuple[Finding, ...]
    """Why an update would be refused, in the coordinates of the file."""

    @property
    def renders(self) -> bool:
        """Whether an update writes files, and touches no cluster."""
        return self.spec.output is OutputMode.RENDER

    @property
    def kubeconfig(self) -> Path | None:
        """The kubeconfig that the stack names, where it is a file."""
        stated = self.spec.kubeconfig
        return None if stated is None or is_kubeconfig_text(stated) else Path(stated)


def read_stack_file(folder: Path, stack: str) -> ReadStack:
    """Read a stack of the project in a folder.

    Raises:
        StackFileError: There is no such project, stack or YAML.
    """
    config = _config(folder, stack)
    spec, findings = parse_stack(read_values(config))
    findings += [*check_stack(spec, config), *judge_queues(spec.queues)]
    compiled: list[Compiled] = []
    for index, serving in enumerate(spec.servings):
        try:
            compiled.append(compile_serving(_without_models(serving)))
        except SpecError as error:
            findings += [finding.under(f"servings[{index}]") for finding in error.findings]
    refusals = [config.located(f) for f in findings if f.level is Level.MANDATORY]
    need = need_of_stack(stack, spec, compiled)
    return ReadStack(need=need, spec=spec, refusals=tuple(refusals))


def _config(folder: Path, stack: str) -> StackConfig:
    project = _yaml(folder / "Pulumi.yaml", f"{folder.absolute()} holds no project of Pulumi")
    where = str(project.get("stackConfigDir") or ".")
    path = folder / where / f"Pulumi.{stack}.yaml"
    known = [p.name.removeprefix("Pulumi.").removesuffix(".yaml")
             for p in sorted(path.parent.glob("Pulumi.*.yaml"))]  # fmt: skip
    stated = _yaml(path, f"there is no stack '{stack}': {suggest(stack, known)}").get("config")
    own = f"{project.get('name')}:"
    values = {
        str(key).removeprefix(own): value
        for key, value in (stated if isinstance(stated, Mapping) else {}).items()
        if str(key).startswith(own)
    }
    return StackConfig(
        project=str(project.get("name")),
        stack=stack,
        file=f"{where}/Pulumi.{stack}.yaml".removeprefix("./"),
        values={key: _text(value) for key, value in values.items() if not _encrypted(value)},
        secret_keys=frozenset(key for key, value in values.items() if _encrypted(value)),
    )


def _yaml(path: Path, missing: str) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise StackFileError(missing) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise StackFileError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, Mapping):
        raise StackFileError(f"{path} holds no map of settings")
    return content


def _encrypted(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {_SECURE}


def _text(value: object) -> str:
    """Give a value as Pulumi hands it to a program."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, default=str)


def _without_models(serving: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out files that describe models: what a cluster must have does not depend on them."""
    roles = serving.get("roles")
    if not isinstance(roles, list):
        return dict(serving)
    return {**serving, "roles": [_without_model(role) for role in roles]}


def _without_model(role: Any) -> Any:
    engine = role.get("engine") if isinstance(role, Mapping) else None
    if not isinstance(engine, Mapping):
        return role
    kept = {key: value for key, value in engine.items() if key != "hf_config"}
    return {**role, "engine": kept}
