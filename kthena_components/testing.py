"""Runs a program under Pulumi's mocks for unit tests: no engine, no cluster, no test framework."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.runtime import mocks

from kthena_components.core.findings import Finding
from kthena_components.resources.components import RefusedError


@dataclass(frozen=True, slots=True)
class Program:
    """What a program would apply, or why it is refused."""

    manifests: tuple[dict[str, Any], ...]
    """The Kubernetes objects, sorted by kind and name."""
    findings: tuple[Finding, ...] = ()
    """The reasons for which a component is refused. There are no manifests then."""

    def manifest(self, kind: str, name: str) -> dict[str, Any]:
        """Return one object.

        Raises:
            KeyError: The program has no such object.
        """
        for one in self.manifests:
            if (one["kind"], one["metadata"]["name"]) == (kind, name):
                return one
        there = ", ".join(f"{one['kind']} {one['metadata']['name']}" for one in self.manifests)
        raise KeyError(f"no {kind} {name}; there are: {there or 'none'}")


class _Objects(mocks.Mocks):
    """Keeps the Kubernetes objects that a program registers."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ.startswith("kubernetes:") and "kind" in args.inputs:
            self.found.append(dict(args.inputs))
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], None]:
        return dict(args.args), None


def run_program(
    program: Callable[[], object], *, project: str = "project", stack: str = "stack"
) -> Program:
    """Run a function that creates resources, and return its objects.

    Any other error of the program is raised as it is.

    Args:
        program: A function without arguments.
        project: The name that `pulumi.get_project()` returns.
        stack: The name that `pulumi.get_stack()` returns.
    """
    objects, refused = _Objects(), list[RefusedError]()

    def attempt() -> None:
        try:
            program()
        except RefusedError as error:
            refused.append(error)

    mocks.set_mocks(objects, project=project, stack=stack, preview=False)
    pulumi.runtime.test(attempt)()  # type: ignore[no-untyped-call]
    if refused:
        return Program((), tuple(refused[0].findings))
    order = sorted(objects.found, key=lambda one: (one["kind"], one["metadata"]["name"]))
    return Program(tuple(order))
