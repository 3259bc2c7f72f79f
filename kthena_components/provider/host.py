"""Answers Pulumi's engine: the program `pulumi-resource-kthena`, for programs of all languages.

Nothing is decided here. The components are those of Python programs, with their checks, types and
names of resources, so that a program may change its language and keep its state.
"""

import os
import sys
import time
from dataclasses import replace
from functools import cache
from threading import Thread

import pulumi
from pulumi.provider import ConstructResult, Provider, main
from pulumi.runtime import settings

from kthena_components import __version__
from kthena_components.core.findings import Finding
from kthena_components.languages import Names, camel_case, schema_text
from kthena_components.resources import components
from kthena_components.resources._call import is_of_option
from kthena_components.resources._cluster_objects import program
from kthena_components.resources._outputs import worded
from kthena_components.resources.components import RefusedError

_LOOKS = 1.0
"""Seconds between two looks at the parent."""


class KthenaProvider(Provider):
    """The provider of the package `kthena`."""

    def __init__(self) -> None:
        super().__init__(__version__, schema_text())

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Register a component and its resources.

        Raises:
            pulumi.InputPropertiesError: With all reasons, by the paths that the user wrote, before
                anything is registered.
        """
        kind, names = resource_type.rpartition(":")[2], Names.of(resource_type)
        worded.set(names.shown)
        program.set(
            _deployment(settings.get_project(), settings.get_stack(), settings.is_dry_run())
        )
        try:
            made = getattr(components, kind)(name, names.to_args(inputs), options)
        except RefusedError as error:
            shown = [_shown(names, finding) for finding in error.findings]
            raise _refused(RefusedError(shown, error.subject)) from None
        outputs = {theirs: getattr(made, ours) for theirs, ours in names.outputs.items()}
        return ConstructResult(made.urn, outputs)


def _shown(names: Names, finding: Finding) -> Finding:
    """Return a finding with the names of other languages, also of Pulumi's options."""
    shown = names.shown(finding)
    return replace(shown, path=camel_case(shown.path)) if is_of_option(finding) else shown


class _Deployment:
    """One preview or update of one stack, for which the engine constructs many components."""


@cache
def _deployment(*_: object) -> _Deployment:
    return _Deployment()


def _refused(error: RefusedError) -> pulumi.InputPropertiesError:
    """Return the error that the engine prints as it is, without a traceback.

    It lists no properties: beside each one the engine would print its value, even one that is
    secret, and the text of a role or an engine as a map in Go's notation.
    Source: pulumi 3.259 pkg/resource/deploy/source_eval.go errorToMessage.
    """
    return pulumi.InputPropertiesError(str(error), [])


def run() -> None:
    """Serve until the program that has started this one ends."""
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    main(KthenaProvider(), sys.argv[1:])


def _end_with(parent: int) -> None:
    """End when the parent has ended: not every command of Pulumi stops the plugins it starts."""
    while os.getppid() == parent:
        time.sleep(_LOOKS)
    os._exit(0)
