"""Checks access to a stack's cluster: the kubeconfig is valid and the server answers.

Only the presence of credentials is checked, and they are never shown.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kthena_components.checker.secrecy import without_login
from kthena_components.core.findings import Finding, Level, SpecError, suggest
from kthena_components.core.plan.stack_file import OutputMode, StackSpec, is_kubeconfig_text
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import SECRET

UNREACHABLE = "cluster-unreachable"
_IS_CLUSTER = "is cluster, but "
_DEFAULT_REMEDY = (
    "start it or connect to it, choose another one with KUBECONFIG or with 'pulumi config set "
    "kubernetes:context NAME', or write files with 'pulumi config set "
    "kubernetes:renderYamlToDirectory rendered'"
)
_IN_CONFIG = "the config value kubeconfig"
ANSWER_SECONDS = 3
"""Seconds to wait for a connection."""

_CREDENTIALS = frozenset({
    "token", "tokenFile", "username", "exec", "auth-provider",
    "client-certificate", "client-certificate-data",
})  # fmt: skip
"""Fields with credentials of a user. Source: client-go tools/clientcmd/client_config.go
canIdentifyUser.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The cluster and user of one kubeconfig context."""

    context: str
    title: str
    server: str
    proxied: bool
    opened: bool
    """Whether its user has credentials."""
    refreshing: bool
    """Whether they come from an auth-provider, which updates the kubeconfig."""


def check_cluster(
    spec: StackSpec, environ: Mapping[str, str], *, secret: bool = False
) -> Finding | None:
    """Report why a stack's cluster cannot be used, by its kubeconfig and an open port.

    Args:
        spec: The stack. The content of a kubeconfig in its config is not shown.
        environ: Variables of this process.
        secret: Whether the path of its kubeconfig is hidden, too.
    """
    render = spec.output is OutputMode.RENDER
    try:
        files = list(_kubeconfigs(spec, environ, secret=secret))
        if not files and "KUBERNETES_SERVICE_HOST" in environ:
            return None  # inside a cluster the provider uses that one
        cluster = _chosen(files, spec.context)
    except SpecError as error:
        return None if render else error.findings[0]
    if not cluster.opened and cluster.server.startswith("https:"):
        return _locked(cluster, render=render)
    return None if render else _answers(cluster, environ)


def check_default_cluster(
    kubeconfig: str | None, context: str | None, environ: Mapping[str, str], *, secret: bool = False
) -> Finding | None:
    """Report why the cluster of a program's default provider cannot be used.

    Args:
        kubeconfig: Pulumi's config value kubernetes:kubeconfig.
        context: Pulumi's config value kubernetes:context.
        environ: Variables of this process.
        secret: Whether the path of the kubeconfig is hidden, too.
    """
    stated = StackSpec(output=OutputMode.CLUSTER, kubeconfig=kubeconfig, context=context)
    found = check_cluster(stated, environ, secret=secret)
    if found is None or found.level is Level.UNKNOWN:
        return None
    unreachable = found.rule == UNREACHABLE
    return Finding(
        path="kubernetes:kubeconfig" if found.path == "output" else f"kubernetes:{found.path}",
        seen=found.seen.removeprefix(_IS_CLUSTER),
        remedy=_DEFAULT_REMEDY if unreachable else found.remedy,
        rule=found.rule,
        level=Level.ADVISORY,
    )


def askable_context(spec: StackSpec, environ: Mapping[str, str]) -> str | None:
    """Return the provider's context, if another client may query its cluster, too."""
    try:
        cluster = _chosen(list(_kubeconfigs(spec, environ)), spec.context)
    except SpecError:
        return None
    return None if cluster.refreshing else cluster.context


def _locked(cluster: _Cluster, *, render: bool) -> Finding:
    """Report what would wait forever: the provider would prompt for a user name and a password.

    This also happens when it renders, because it opens the cluster of KUBECONFIG nevertheless.
    """
    why = "the provider reads KUBECONFIG nevertheless, and " if render else ""
    return Finding(
        path="output",
        seen=f"is {'render' if render else 'cluster'}, but {why}{cluster.title} has no "
        "credentials, so it would wait for a user name and a password",
        remedy="run with KUBECONFIG=/dev/null" if render else "add a user with credentials to it",
        rule="kubeconfig",
    )


def _answers(cluster: _Cluster, environ: Mapping[str, str]) -> Finding | None:
    """Report a cluster that refuses a connection; None if it takes one."""
    address = _address(cluster, environ)
    if address is None:
        seen = f"{cluster.title} was not checked, because it cannot be tested with a TCP connection"
        return Finding(path="output", seen=seen, rule=UNREACHABLE, level=Level.UNKNOWN)
    try:
        socket.create_connection(address, ANSWER_SECONDS).close()
    except (OSError, UnicodeError) as error:
        seen = f"{cluster.title} does not answer: {_reason(error)}"
        remedy = "start it or connect to it, choose another one with kubeconfig and context"
        return _unreachable(seen, remedy)
    return None


def _unreachable(seen: str, remedy: str) -> Finding:
    return Finding(
        path="output",
        seen=f"{_IS_CLUSTER}{seen}",
        remedy=f"{remedy}, or write output: render",
        rule=UNREACHABLE,
    )


def _address(cluster: _Cluster, environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the host and port to try; None if a proxy is in between."""
    try:
        server = urlsplit(cluster.server)
        host, port = server.hostname, server.port or (80 if server.scheme == "http" else 443)
    except ValueError:
        return None
    # As in Go, a proxy of the environment is never used for this machine itself.
    local = host == "localhost" or (host or "").startswith("127.")
    proxied = any(environ.get(key) for key in ("HTTPS_PROXY", "https_proxy")) and not local
    return None if host is None or proxied or cluster.proxied else (host, port)


def _reason(error: OSError | UnicodeError) -> str:
    """Describe an error without the path or the host that its own text may contain."""
    return getattr(error, "strerror", None) or "it is not a valid text"


def _kubeconfigs(
    spec: StackSpec, environ: Mapping[str, str], *, secret: bool = False
) -> Iterator[tuple[str, Any]]:
    """Read the kubeconfigs that the provider will read, each with its title for messages."""
    stated = spec.kubeconfig
    if is_kubeconfig_text(stated):
        yield _IN_CONFIG, _mapping(_IN_CONFIG, stated)
        return
    ambient = (environ.get("KUBECONFIG") or "~/.kube/config").split(os.pathsep)
    for path in [stated] if stated else filter(None, ambient):
        shown = SECRET if secret and stated else path
        try:
            yield shown, _mapping(shown, Path(path).expanduser().read_text())
        except FileNotFoundError:
            if stated:
                raise _refused(f"there is no file '{shown}'", "write the path of one") from None
        except (OSError, UnicodeDecodeError) as error:
            seen = f"'{shown}' cannot be read: {_reason(error)}"
            raise _refused(seen, "make it readable") from None


def _mapping(source: str, text: str | None) -> Any:
    try:
        content = yaml.safe_load(text or "") or {}
    except yaml.YAMLError:
        content = None
    if not isinstance(content, Mapping):
        raise _no_kubeconfig(source)
    return content


def _chosen(files: list[tuple[str, Any]], stated: str | None) -> _Cluster:
    """Find the cluster of the stated or the current context. As in kubectl, the first file wins."""
    if not files:
        seen = "there is no kubeconfig, neither at KUBECONFIG nor at ~/.kube/config"
        raise SpecError([_unreachable(seen, "set KUBECONFIG or the config value kubeconfig")])
    sources = " and ".join(source for source, _ in files)
    secret = sources == _IN_CONFIG
    try:
        contexts, clusters, users = (_index(files, kind) for kind in ("context", "cluster", "user"))
        name = stated or next(filter(None, (c.get("current-context") for _, c in files)), None)
        context = contexts.get(name, {})
        cluster = clusters.get(context.get("cluster"), {})
        user = users.get(context.get("user")) or {}
        server, proxied = str(cluster.get("server")), bool(cluster.get("proxy-url"))
        opened = any(user.get(key) for key in _CREDENTIALS)
    except (TypeError, KeyError, AttributeError):
        raise _no_kubeconfig(sources) from None
    if name is None:
        known = SECRET if secret else ", ".join(sorted(map(str, contexts)))
        seen = f"{sources} has no current context"
        raise SpecError([_unreachable(seen, f"write context; known: {known}")])
    where = f"context '{SECRET if secret and not stated else name}' of {sources}"
    if name not in contexts:
        known = f"known: {SECRET}" if secret else suggest(str(name), contexts)
        raise _refused(f"there is no {where}", known, "context")
    title = f"{where}, {SECRET if secret else without_login(server)},"
    return _Cluster(context=str(name), title=title, server=server, proxied=proxied,
                    opened=opened, refreshing=bool(user.get("auth-provider")))  # fmt: skip


def _index(files: list[tuple[str, Any]], kind: str) -> dict[Any, Any]:
    return {
        item["name"]: item[kind]
        for _, content in reversed(files)
        for item in content.get(f"{kind}s") or []
    }


def _no_kubeconfig(source: str) -> SpecError:
    return _refused(f"{source} contains no kubeconfig", "write the path of one")


def _refused(seen: str, remedy: str, path: str = "kubeconfig") -> SpecError:
    return SpecError([Finding(path=path, seen=seen, remedy=remedy, rule="kubeconfig")])
