"""Records a program's registrations as plain data, and repeats them as a raw program.

The raw program does not use the package: it reads JSON and calls Pulumi's own classes.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulumi

_GIVEN = ("props", "opts", "remote", "dependency")
"""What a resource is given behind its type, name and sort."""
RESOURCE = "$resource"
TIMEOUTS = "$timeouts"


class _Custom(pulumi.CustomResource):
    """A subclass, like each resource of an SDK.

    Pulumi's SDK looks for a third constructor on the call stack to find the source position of a
    resource. For a plain `pulumi.CustomResource(…)` it finds none, and sends no position.
    """

    def __init__(self, kind: str, name: str, props: Any, opts: pulumi.ResourceOptions) -> None:
        super().__init__(kind, name, props, opts)


class _Component(pulumi.ComponentResource):
    """The same for components."""

    def __init__(self, kind: str, name: str, props: Any, opts: pulumi.ResourceOptions) -> None:
        super().__init__(kind, name, props, opts)


class _Provider(pulumi.ProviderResource):
    """The same for providers, which have the name of their package."""

    def __init__(self, kind: str, name: str, props: Any, opts: pulumi.ResourceOptions) -> None:
        super().__init__(kind.rpartition(":")[2], name, props, opts)


MAKERS: Mapping[str, Callable[..., Any]] = {
    "component": _Component,
    "custom": _Custom,
    "provider": _Provider,
}


def record(program: Callable[[], object], path: Path) -> None:
    """Run a program inside Pulumi, and record everything that it registers."""
    events: list[dict[str, Any]] = []
    with _noting(events):
        program()
    path.write_text(json.dumps(events))


def replay(path: Path) -> None:
    """Register the recorded resources. This is the raw program."""
    made: list[Any] = []
    for event in json.loads(path.read_text()):
        if "outputs" in event:
            made[event["of"]].register_outputs(event["outputs"])
        else:
            opts = {key: _restored(value, made) for key, value in event["opts"].items()}
            make, props = MAKERS[event["class"]], event["props"]
            made.append(make(event["type"], event["name"], props, pulumi.ResourceOptions(**opts)))


@contextmanager
def _noting(events: list[dict[str, Any]]) -> Iterator[None]:
    """Record each call of the two methods that every registration uses."""
    register = pulumi.Resource.__init__
    finish = pulumi.ComponentResource.register_outputs
    numbers: dict[pulumi.Output[str], int] = {}

    def noting_register(
        self: pulumi.Resource, t: str, name: str, custom: bool, *rest: Any, **named: Any
    ) -> None:
        given = {**dict(zip(_GIVEN, rest, strict=False)), **named}
        if given.get("dependency"):  # stands for another resource, and is not registered
            register(self, t, name, custom, *rest, **named)
            return
        provider = isinstance(self, pulumi.ProviderResource)
        own = "custom" if custom else "component"
        event = {"class": "provider" if provider else own, "type": t, "name": name}
        stated = vars(given["opts"] or pulumi.ResourceOptions())
        opts = {key: value for key, value in stated.items() if value is not None}
        events.append(
            event | {"props": _plain(given["props"], numbers), "opts": _plain(opts, numbers)}
        )
        register(self, t, name, custom, *rest, **named)
        numbers[self.urn] = len(numbers)

    def noting_finish(self: pulumi.ComponentResource, outputs: Any) -> None:
        if self.urn in numbers:  # the stack itself is registered by Pulumi
            events.append({"of": numbers[self.urn], "outputs": _plain(outputs, numbers)})
        finish(self, outputs)

    pulumi.Resource.__init__ = noting_register  # type: ignore[method-assign]
    pulumi.ComponentResource.register_outputs = noting_finish  # type: ignore[method-assign]
    try:
        yield
    finally:
        pulumi.Resource.__init__ = register  # type: ignore[method-assign]
        pulumi.ComponentResource.register_outputs = finish  # type: ignore[method-assign]


def _plain(value: Any, numbers: Mapping[pulumi.Output[str], int]) -> Any:
    """Return a value for JSON. Raise for a value that JSON cannot represent."""
    if isinstance(value, pulumi.Resource):
        return {RESOURCE: numbers[value.urn]}
    if isinstance(value, pulumi.CustomTimeouts):
        return {TIMEOUTS: vars(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item, numbers) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, numbers) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{value!r} cannot be recorded")


def _restored(value: Any, made: list[Any]) -> Any:
    if isinstance(value, dict) and RESOURCE in value:
        return made[value[RESOURCE]]
    if isinstance(value, dict) and TIMEOUTS in value:
        return pulumi.CustomTimeouts(**value[TIMEOUTS])
    return [_restored(item, made) for item in value] if isinstance(value, list) else value
