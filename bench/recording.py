"""Every registration of a program as plain data, and a raw program that makes them again.

The raw program knows nothing of the package: it reads JSON and calls Pulumi's own classes.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi

REFERENCE = "$resource"
TIMEOUTS = "$timeouts"


def record(program: Callable[[], object], path: Path) -> None:
    """Run a program inside Pulumi, and write down what it asked for when Pulumi is done."""
    events: list[dict[str, Any]] = []
    numbers: dict[pulumi.Resource, int] = {}
    register, finish = pulumi.Resource.__init__, pulumi.ComponentResource.register_outputs

    def noting_register(
        self: pulumi.Resource, t: str, name: str, custom: bool, *rest: Any, **named: Any
    ) -> None:
        props, opts, *_ = (*rest, *(named.get(key) for key in ("props", "opts")[len(rest) :]))
        numbers[self] = len(numbers)
        kind = "provider" if isinstance(self, pulumi.ProviderResource) else "component"
        events.append(
            {
                "do": "custom" if custom and kind != "provider" else kind,
                "type": t,
                "name": name,
                "props": _plain(props or {}, numbers),
                "opts": _options(opts, numbers),
            }
        )
        register(self, t, name, custom, *rest, **named)

    def noting_finish(self: pulumi.ComponentResource, outputs: Any) -> None:
        if self in numbers:  # the stack itself is nobody's registration
            plain = _plain(outputs, numbers)
            events.append({"do": "outputs", "of": numbers[self], "outputs": plain})
        finish(self, outputs)

    pulumi.Resource.__init__ = noting_register  # type: ignore[method-assign]
    pulumi.ComponentResource.register_outputs = noting_finish  # type: ignore[method-assign]
    try:
        program()
    finally:
        pulumi.Resource.__init__ = register  # type: ignore[method-assign]
        pulumi.ComponentResource.register_outputs = finish  # type: ignore[method-assign]
    path.write_text(json.dumps(events))


def replay(path: Path) -> None:
    """Register what was recorded: the raw Pulumi program that everything is measured against."""
    made: list[Any] = []
    for event in json.loads(path.read_text()):
        match event:
            case {"do": "outputs", "of": number, "outputs": outputs}:
                made[number].register_outputs(outputs)
            case {"do": "provider", "type": kind, "name": name, "props": props, "opts": opts}:
                package = kind.rpartition(":")[2]
                made.append(pulumi.ProviderResource(package, name, props, _restore(opts, made)))
            case {"do": "custom", "type": kind, "name": name, "props": props, "opts": opts}:
                made.append(pulumi.CustomResource(kind, name, props, _restore(opts, made)))
            case {"do": "component", "type": kind, "name": name, "props": props, "opts": opts}:
                made.append(pulumi.ComponentResource(kind, name, props, _restore(opts, made)))


def _options(
    opts: pulumi.ResourceOptions | None, numbers: Mapping[pulumi.Resource, int]
) -> dict[str, Any]:
    stated = {key: value for key, value in vars(opts or pulumi.ResourceOptions()).items() if value}
    return {key: _plain(value, numbers) for key, value in stated.items()}


def _plain(value: Any, numbers: Mapping[pulumi.Resource, int]) -> Any:
    """Give a value as JSON can hold it. What it cannot hold is an error, so nothing gets lost."""
    if isinstance(value, pulumi.Resource):
        return {REFERENCE: numbers[value]}
    if isinstance(value, pulumi.CustomTimeouts):
        return {TIMEOUTS: vars(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item, numbers) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, numbers) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{value!r} cannot be recorded")


def _restore(opts: Mapping[str, Any], made: list[Any]) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(**{key: _restored(value, made) for key, value in opts.items()})


def _restored(value: Any, made: list[Any]) -> Any:
    match value:
        case {"$resource": number}:
            return made[number]
        case {"$timeouts": stated}:
            return pulumi.CustomTimeouts(**stated)
        case [*items]:
            return [_restored(item, made) for item in items]
    return value
