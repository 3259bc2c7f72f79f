"""Reads the config.json files that engines name, before anything is compiled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.findings import Finding, SpecError, join_path
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.reading.files import Unreadable, read_text


def read_hf_configs(args: dict[str, Any]) -> dict[str, Any]:
    """Return args in which each `hf_config` path is replaced by the file's content.

    Args:
        args: Plain data of a component: a serving or group with roles, or a role.

    Raises:
        SpecError: With every file that cannot be read, is not JSON, or contains no object.
    """
    findings: list[Finding] = []
    read: dict[str, Any] = _role(args, "", findings)
    if isinstance(args.get("roles"), list):
        read = {
            **read,
            "roles": [_role(role, f"roles[{i}]", findings) for i, role in enumerate(args["roles"])],
        }
    if findings:
        raise SpecError(findings)
    return read


def _role(role: Any, path: str, findings: list[Finding]) -> Any:
    """Replace the path of an engine's config.json by its content, or report why not."""
    engine: Any = role.get("engine") if isinstance(role, Mapping) else None
    stated = engine.get("hf_config") if isinstance(engine, Mapping) else None
    if not isinstance(stated, str) or is_unresolved(stated):
        return role
    try:
        return {**role, "engine": {**engine, "hf_config": _config(stated)}}
    except (OSError, ValueError, RecursionError) as error:
        finding = Finding(
            path=join_path(path, "engine.hf_config"),
            seen=f"{stated[:200]} {_reason(error)}",
            remedy="name the config.json of the model, or the folder that contains it",
            rule="hf-config-shape",
        )
        findings.append(finding)
        return role


def _config(path: str) -> dict[str, Any]:
    """Read a model's config.json, or the one in a folder."""
    place = Path(path, "config.json") if Path(path).is_dir() else Path(path)
    text = read_text(str(place), named=False)
    if isinstance(text, Unreadable):
        raise ValueError(text.because)  # noqa: TRY004 - of the file, not of an argument
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        message = "is not JSON"
        raise ValueError(message) from None
    if not isinstance(config, dict):
        message = "contains no JSON object"
        raise ValueError(message)  # noqa: TRY004 - of the file, not of an argument
    return config


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error)
