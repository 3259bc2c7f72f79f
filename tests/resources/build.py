"""Components from the untyped arguments of tests/support/specs.py."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi

from kthena_components import HyperNodeTopology, ModelServing, Queue, Role, ServingGroup

Opts = pulumi.ResourceOptions | None


def serving(args: Mapping[str, Any], opts: Opts = None, name: str = "chat") -> ModelServing:
    return ModelServing(name, cast("Any", args), opts)


def group(args: Mapping[str, Any], opts: Opts = None, name: str = "chat") -> ServingGroup:
    return ServingGroup(name, cast("Any", args), opts)


def role(args: Mapping[str, Any], opts: Opts = None, name: str = "decode") -> Role:
    return Role(name, cast("Any", args), opts)


def topology(args: Mapping[str, Any], name: str = "network") -> HyperNodeTopology:
    return HyperNodeTopology(name, cast("Any", args))


def queue(args: Mapping[str, Any], name: str = "research") -> Queue:
    return Queue(name, cast("Any", args))


def late(text: str) -> pulumi.Output[str]:
    """Give an Output that is known as soon as it is waited for."""
    return pulumi.Output.from_input(text)


def unknown(name: str = "thing") -> pulumi.Output[str]:
    """Give an Output that a preview does not know."""
    return pulumi.CustomResource("test:index:Thing", name, {}).id
