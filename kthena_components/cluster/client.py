"""Requests to an API server, by apiVersion and kind: a thin wrapper of the official client.

The official client reads kubeconfigs with certificates, tokens and exec plugins, and reuses
connections. Its typed classes are not used: custom resources have none.
"""

import json
import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, ApiException
from kubernetes.config.config_exception import ConfigException

from kthena_components.checker.secrecy import without_login
from kthena_components.core.values.dataclass import dataclass

Body = Mapping[str, Any]
Kubeconfig = Path | Mapping[str, Any]
"""A path, or the content of a kubeconfig."""
PAGE = 500
"""Page size of lists."""
SECONDS = (5, 60)
"""Seconds for connecting, and for each read."""


class ClusterError(Exception):
    """A request that failed or was not answered. Its text is written for users."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        """Keep the HTTP status (0 without an answer) and the reason, such as AlreadyExists."""
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Resource:
    """The API address of a kind."""

    path: str
    """Path of the group and version: `/apis/apps/v1`."""
    plural: str
    namespaced: bool


class Cluster:
    """One API server, as one user."""

    def __init__(self, client: ApiClient) -> None:
        """Take an official client."""
        self._client = client
        self._resources: dict[tuple[str, str], Resource] = {}

    @classmethod
    def open(cls, kubeconfig: Kubeconfig | None = None, context: str | None = None) -> Self:
        """Open the cluster of a kubeconfig; KUBECONFIG or the home folder's when left out."""
        if isinstance(kubeconfig, Mapping):
            source: dict[str, Any] = {"config_dict": dict(kubeconfig)}
            open_client: Any = config.new_client_from_config_dict
        else:
            if kubeconfig and os.pathsep in str(kubeconfig):
                # The client's library would read several files, which nobody has looked through.
                message = f"the path '{kubeconfig}' contains '{os.pathsep}'"
                raise ClusterError(
                    0, "NoKubeconfig", f"{message}, which separates paths: rename it"
                )
            source = {"config_file": str(kubeconfig) if kubeconfig else None}
            open_client = config.new_client_from_config
        try:
            client = open_client(**source, context=context)
        except (ConfigException, OSError) as error:
            message = str(error)
            if isinstance(error, OSError) and error.filename is not None:
                message = f"{error.filename} cannot be read: {error.strerror}"
            raise ClusterError(0, "NoKubeconfig", message) from error
        client.configuration.retries = False
        _trim_tokens(client.configuration)
        return cls(client)

    @property
    def server(self) -> str:
        """Address of the API server, to be shown."""
        return without_login(str(self._client.configuration.host))

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Send one request, and give what the answer's JSON holds."""
        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            answer: Any = self._client.call_api(
                *self._client.param_serialize(
                    method,
                    path,
                    query_params=list((query or {}).items()),
                    header_params=headers,
                    body=body,
                    auth_settings=["BearerToken"],
                ),
                _request_timeout=SECONDS,
            )
            content = answer.read()
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            raise ClusterError(0, "Unreachable", _words(error)) from error
        except ValueError:  # whose text may hold the header with the token
            text = "its address or the credentials for it cannot be sent"
            raise ClusterError(0, "Unreachable", text) from None
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise _refusal(answer.status, content)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            text = "what answers is not an API server: its answer is not JSON"
            raise ClusterError(0, "Unreadable", text) from None

    def resource(self, api_version: str, kind: str) -> Resource:
        """Find out how a kind is addressed; ClusterError with status 404 when it is not served."""
        key = (api_version, kind)
        if key not in self._resources:
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            try:
                for item in self.ask("GET", path)["resources"]:
                    if "/" not in item["name"]:
                        found = Resource(path, item["name"], item["namespaced"])
                        self._resources[api_version, item["kind"]] = found
            except (LookupError, TypeError):
                text = f"what answers is not an API server: its answer to {path} lists no resources"
                raise ClusterError(0, "Unreadable", text) from None
        if key not in self._resources:
            raise ClusterError(404, "NotFound", f"{api_version} has no {kind}")
        return self._resources[key]

    def serves(self, api_version: str, kind: str) -> bool:
        """Return whether a kind is served."""
        try:
            self.resource(api_version, kind)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def preferred(self, group: str) -> str | None:
        """Return the apiVersion that the server prefers of a group; None if it serves none."""
        if not group:
            return "v1"
        try:
            return str(self.ask("GET", f"/apis/{group}")["preferredVersion"]["groupVersion"])
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def path(self, body: Body, *, named: bool = True) -> str:
        """Return the address of an object, or of all objects beside it."""
        metadata = body.get("metadata") or {}
        found = self.resource(str(body["apiVersion"]), str(body["kind"]))
        namespace = f"/namespaces/{metadata.get('namespace', 'default')}"
        end = f"/{metadata['name']}" if named else ""
        return f"{found.path}{namespace if found.namespaced else ''}/{found.plural}{end}"

    def create(self, body: Body, *, dry_run: bool = False) -> Any:
        """Create an object, or find out whether the cluster would take it."""
        query = {"dryRun": "All"} if dry_run else None
        return self.ask("POST", self.path(body, named=False), body, query)

    def get(self, body: Body) -> Any:
        """Read one object, named by apiVersion, kind and metadata."""
        return self.ask("GET", self.path(body))

    def delete(self, body: Body) -> None:
        """Delete one object."""
        self.ask("DELETE", self.path(body))

    def patch(self, body: Body, change: Body, subresource: str = "") -> Any:
        """Merge a change into one object."""
        path = f"{self.path(body)}/{subresource}" if subresource else self.path(body)
        return self.ask("PATCH", path, change, content_type="application/merge-patch+json")

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        selector: str = "",
        fields: str = "",
    ) -> Iterator[dict[str, Any]]:
        """List objects of a kind, page by page; of all namespaces when none is given.

        Args:
            api_version: Group and version.
            namespace: A namespace; None for all.
            selector: A label selector; empty for none.
            fields: A field selector; empty for none.
        """
        found = self.resource(api_version, kind)
        part = f"/namespaces/{namespace}" if namespace and found.namespaced else ""
        stated = {"limit": str(PAGE), "labelSelector": selector, "fieldSelector": fields}
        query = {name: value for name, value in stated.items() if value}
        while True:
            page = self.ask("GET", f"{found.path}{part}/{found.plural}", query=query)
            for item in page["items"]:
                yield {"apiVersion": api_version, "kind": kind, **item}
            following = page["metadata"].get("continue")
            if not following:
                return
            query["continue"] = following


def _trim_tokens(configuration: Any) -> None:
    """Send tokens without the newline that files with one mostly end in, as client-go does."""
    refresh = configuration.refresh_api_key_hook

    def trim(configured: Any) -> None:
        if refresh is not None:
            refresh(configured)  # which also puts itself back in our place
            configured.refresh_api_key_hook = trim
        held = configured.api_key
        held.update({name: str(value).strip() for name, value in held.items()})

    configuration.refresh_api_key_hook = trim


def _refusal(status: int, content: bytes) -> ClusterError:
    """Read the Status object that API servers answer with."""
    try:
        said = json.loads(content)
        return ClusterError(status, said.get("reason", ""), said.get("message", ""))
    except (ValueError, AttributeError, RecursionError):
        return ClusterError(status, "", content.decode(errors="replace").strip())


def _words(error: Exception) -> str:
    """Explain why there was no answer, without passwords and the addresses of objects in memory."""
    reason = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, Exception) else error)
    return without_login(text.rpartition(">: ")[2])
