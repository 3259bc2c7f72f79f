"""Reads a project's stack file without Pulumi, for the requirements of its servings."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kthena_components.cluster.kubeconfig import anchored, programs_of
from kthena_components.cluster.requirements import Requirements, requirements_of_stack
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.compiler.stack_secrets import check_secrets_used
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.plan.report import requested_gpus
from kthena_components.core.plan.stack_file import (
    OutputMode,
    StackConfig,
    StackSpec,
    check_stack,
    is_kubeconfig_text,
    parse_stack,
    read_values,
    within_budget,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.project import (
    ProjectError,
    config_text,
    is_encrypted,
    read_project,
    stack_config,
)
from kthena_components.reading.settings import parse_map
from kthena_components.systems.volcano.emit_cluster import check_queues


class StackFileError(Exception):
    """A stack file that cannot be used. Its text is written for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStack:
    """A stack and its findings."""

    need: Requirements
    spec: StackSpec
    file: str
    """Path, relative to the project's folder."""
    refusals: tuple[Finding, ...]
    """Findings that would make an update fail, with paths in the file."""

    @property
    def is_empty(self) -> bool:
        """Whether it lists nothing, and nothing is wrong with that: other programs list nothing."""
        return not (self.spec.servings or self.refusals)

    @property
    def renders(self) -> bool:
        """Whether an update writes files instead of changing a cluster."""
        return self.spec.output is OutputMode.RENDER

    @property
    def kubeconfig(self) -> Path | None:
        """The kubeconfig that the stack names, if that is a path."""
        stated = self.spec.kubeconfig
        return None if stated is None or is_kubeconfig_text(stated) else _path(stated)


def read_stack_file(folder: Path, stack: str) -> ReadStack:
    """Read a stack of the project in a folder.

    Raises:
        StackFileError: There is no such project, stack or YAML.
    """
    config = _config(folder, stack)
    try:
        spec, findings = parse_stack(read_values(config))
    except RecursionError:  # a JSON text in it
        raise StackFileError(f"{config.file} is nested too deeply to be read") from None
    findings += [*check_stack(spec, config), *check_queues(spec.queues)]
    compiled: dict[str, Compiled] = {}
    for index, serving in enumerate(spec.servings):
        try:
            compiled[f"servings[{index}]"] = compile_serving(
                _without_models(serving), gpus=spec.gpus
            )
        except SpecError as error:
            findings += [finding.under(f"servings[{index}]") for finding in error.findings]
    findings += within_budget(spec, requested_gpus(one.plan for one in compiled.values()))
    findings += check_secrets_used(spec, compiled)
    refusals = [config.located(f) for f in findings if f.level is Level.MANDATORY]
    keys = {*config.values, *config.secret_keys}
    if not any(key.partition(".")[0].partition("[")[0] in StackSpec.model_fields for key in keys):
        refusals = []  # a program of the user's own reads other keys
    need = requirements_of_stack(stack, spec, compiled.values())
    return ReadStack(need=need, spec=spec, refusals=tuple(refusals), file=config.file)


def usable_kubeconfig(
    stack: ReadStack, context: str | None, *, allow_exec: bool
) -> Path | Mapping[str, Any] | None:
    """Return the kubeconfig that a stack names, unless that runs programs or sends files.

    Returns its content, so that what was checked is what is used; or its path, if the user has
    named the same file or allows everything.

    Raises:
        StackFileError: It cannot be read, or it would run a program or send a file.
    """
    path = stack.kubeconfig
    if path is None or _is_own(path):
        return path
    stated = f"{stack.file}: kubeconfig names {path}"
    text = read_text(str(path), named=False)
    content = text if isinstance(text, Unreadable) else parse_map(text, str(path))
    if isinstance(content, Unreadable):
        raise StackFileError(f"{stated}, which {content.because}. Name another with --kubeconfig")
    if allow_exec:
        return path
    found = programs_of(content, context or _current(content))
    if found:
        bound = "programs and files that a stack file names are neither run nor sent"
        instead = "Look at it, then name it yourself with --kubeconfig, or add --allow-exec"
        raise StackFileError(f"{stated}, and {', '.join(found)}, but {bound}. {instead}")
    return anchored(content, str(path.absolute().parent))


def _current(content: Mapping[str, Any]) -> str | None:
    stated = content.get("current-context")
    return None if stated is None else str(stated)


def _path(stated: str) -> Path:
    try:
        return Path(stated).expanduser()
    except RuntimeError:  # a home folder of an unknown user
        return Path(stated)


def _is_own(path: Path) -> bool:
    """Return whether the user's environment names the same kubeconfig."""
    return any(own.exists() and path.exists() and own.samefile(path) for own in _own())


def _own() -> Iterator[Path]:
    stated = os.environ.get("KUBECONFIG") or "~/.kube/config"
    yield from (_path(path) for path in stated.split(os.pathsep) if path)


def _config(folder: Path, stack: str) -> StackConfig:
    """Read the config of a stack; encrypted values count as given, but are not read."""
    try:
        project = read_project(folder)
        stated = stack_config(folder, project, stack)
    except ProjectError as error:
        raise StackFileError(str(error)) from None
    own = f"{project.name}:"
    values = {key.removeprefix(own): stated[key] for key in stated if key.startswith(own)}
    return StackConfig(
        project=project.name,
        stack=stack,
        file=project.stack_file(stack),
        values={
            key: config_text(value) for key, value in values.items() if not is_encrypted(value)
        },
        secret_keys=frozenset(key for key, value in values.items() if is_encrypted(value)),
    )


def _without_models(serving: Mapping[str, Any]) -> dict[str, Any]:
    """Drop files that describe models: requirements do not depend on them."""
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
