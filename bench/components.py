"""The program that a user of the package would write for the workload."""

from typing import Any, cast

import pulumi

from bench.workload import servings
from kthena_components import ModelServing
from kthena_components.resources._access import provider_version


def deploy(backend: str, count: int, rendered: str, groups: int = 1) -> None:
    """Register servings that are rendered to a folder."""
    properties: dict[str, Any] = {"renderYamlToDirectory": rendered}
    version = pulumi.ResourceOptions(version=provider_version())
    provider = pulumi.ProviderResource("kubernetes", "render", properties, version)
    options = pulumi.ResourceOptions(provider=provider)
    for args in servings(backend, count, groups):
        ModelServing(args["name"], cast("Any", args), options)
