"""The providers of a program: their release, how they reach clusters, what these have.

Only for questions whose answer the engine does not have. Nothing is asked without the extra
`cluster`, and of a provider that the user creates: its kubeconfig may be an Output.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import settings
from pulumi.runtime.mocks import MockMonitor

from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown, is_unresolved
from kthena_components.resources._outputs import Outputs, without_tokens

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Access:
    """How a provider reaches its cluster; None for what the shell says."""

    kubeconfig: str | None = field(repr=False)
    """A path, or a whole kubeconfig."""
    context: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an object is in a cluster. A manifest has tokens there, which no cluster knows."""

    api_version: str
    kind: str
    namespace: str
    """Empty for a cluster-scoped object."""
    name: str

    def __post_init__(self) -> None:
        if is_unresolved(self.namespace) or is_unresolved(self.name):
            raise ValueError("an object is looked up by its name, not by a token")

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        return f"{self.kind} {self.namespace}{'/' if self.namespace else ''}{self.name}"


class PlacedObject:
    """An object of a component, whose place may be known only later."""

    def __init__(self, manifest: Manifest, outputs: Outputs) -> None:
        metadata: Mapping[str, Any] = manifest.body["metadata"]
        named = outputs.restore([metadata.get("namespace", ""), metadata["name"]])
        self._without_values = without_tokens(manifest.title)
        self._version, self._kind = str(manifest.body["apiVersion"]), manifest.kind
        self.place: pulumi.Output[Place] = pulumi.Output.all(*named).apply(self._read)
        """Unknown in a preview that does not know the namespace."""

    def _read(self, named: Sequence[str]) -> Place:
        return Place(api_version=self._version, kind=self._kind, namespace=named[0], name=named[1])

    async def title(self, place: Place) -> str:
        """Return its title, to be shown: without the value of a secret namespace."""
        return self._without_values if await self.place.is_secret() else place.title


_accesses: WeakKeyDictionary[pulumi.ProviderResource, Access] = WeakKeyDictionary()


def mark_reaching(provider: pulumi.ProviderResource, access: Access) -> None:
    """Remember how a provider reaches its cluster."""
    _accesses[provider] = access


def access_of(provider: pulumi.ProviderResource | None) -> Access | None:
    """Return how a provider reaches its cluster; None if that is not known, or it has none.

    A user's unit test has no cluster either, whatever the shell says.
    """
    if type(settings.get_monitor()) is MockMonitor:
        return None
    if provider is not None:
        return _accesses.get(provider)
    config = pulumi.Config("kubernetes")
    if config.get("renderYamlToDirectory") is not None:
        return None
    return Access(config.get("kubeconfig"), config.get("context"))


def answer_of(access: Access, question: Callable[[Any], _Answer]) -> tuple[str, _Answer] | None:
    """Return the cluster's address and its answer to a question; None if there is none.

    Args:
        access: How the cluster is reached.
        question: Reads from a `cluster.client.Cluster`.
    """
    # Imported here because most programs need none of it.
    from kthena_components.core.plan.stack_file import OutputMode, StackSpec  # noqa: PLC0415
    from kthena_components.resources.cluster import askable_context  # noqa: PLC0415

    where = StackSpec(
        output=OutputMode.CLUSTER, kubeconfig=access.kubeconfig, context=access.context
    )
    context = askable_context(where, os.environ)
    if context is None:
        return None
    try:
        from kthena_components.cluster.connect import ask  # noqa: PLC0415 - needs the extra
    except ImportError:
        return None
    return ask(access.kubeconfig, context, question)


def live(access: Access, place: Place) -> tuple[str, Mapping[str, Any] | None] | None:
    """Return the cluster's address and the metadata of an object there, None if it is missing.

    None instead of both if that could not be found out.
    """
    metadata = {"name": place.name, **({"namespace": place.namespace} if place.namespace else {})}
    body = {"apiVersion": place.api_version, "kind": place.kind, "metadata": metadata}
    answer = answer_of(access, lambda cluster: _read(cluster, body))
    if answer is None or isinstance(answer[1], Unknown):
        return None
    server, found = answer
    return server, None if found is None else mapping(mapping(found).get("metadata"))


def _read(cluster: Any, body: Mapping[str, Any]) -> Any:
    from kthena_components.cluster.fetch_servings_and_inventory import read  # noqa: PLC0415 - needs the extra

    return read(cluster, body)


# The release of the Kubernetes provider: the installed pulumi-kubernetes states it.


TESTED = "4.25"
"""The minor release with which the conformance tests ran. The waits, the field managers and the
rendering are the provider's, and other releases may change them."""
REQUIREMENT = f"pulumi-kubernetes=={TESTED}.*"
"""For pip: the tested release. pyproject.toml allows others, whose tests need no cluster."""


@cache
def provider_version() -> str:
    """Return the version of the Kubernetes provider, which the installed package states."""
    return version("pulumi-kubernetes")


@cache
def warn_of_untested() -> None:
    """Warn once in a program if pulumi-kubernetes, and so the provider, is an untested release."""
    installed = provider_version()
    if installed.startswith(f"{TESTED}."):
        return
    pulumi.log.warn(
        f"pulumi-kubernetes {installed} is installed, so Pulumi starts the provider {installed}. "
        f"What kthena-components registers is tested with it; what a cluster does with that, only "
        f"with {TESTED}. docs/own-program.md says what differs. For the tested release: "
        f"pip install '{REQUIREMENT}'"
    )
