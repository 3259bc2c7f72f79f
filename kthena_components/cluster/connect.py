"""Opens a cluster for a command or for one question, or explains why it cannot."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import urllib3
import yaml

from kthena_components.cluster.client import Cluster, ClusterError, Kubeconfig
from kthena_components.core.plan.stack_file import is_kubeconfig_text
from kthena_components.core.values.display import SECRET
from kthena_components.core.values.read import mapping

_NO_PROGRAM = re.compile(r"No such file or directory: '([^']+)'")
_NO_CONTEXT = re.compile(r"object with name (\S+) in \S*/(\w+?)s? list")
_NOISE = re.compile(
    r"\w+\([^)]*\): |Failed to establish a new connection: |\[Errno -?\d+\] |"
    r"Failed to resolve '[^']*' "
)
_CHOOSE = "Name another cluster with --kubeconfig or --context"


def open_cluster(kubeconfig: Kubeconfig | None, context: str | None) -> tuple[Cluster, str]:
    """Open a cluster and return it with its version.

    Raises:
        ClusterError: The cluster cannot be used. The text is a sentence for the user.
    """
    file = kubeconfig if isinstance(kubeconfig, Path) else None
    try:
        with _login_errors() as errors:
            cluster = Cluster.open(kubeconfig, context)
    except ClusterError as error:
        raise _not_usable(_no_kubeconfig(_flat(str(error)), file)) from None
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError):
        where = file or "the kubeconfig"
        raise _not_usable(f"{where} cannot be read as a kubeconfig. {_CHOOSE}") from None
    except Exception as error:  # noqa: BLE001 - each way to log in raises its own
        why = type(error).__name__  # and its text may contain a credential
        raise _not_usable(f"the login of the kubeconfig has failed: {why}. {_CHOOSE}") from None
    # Disabled verification is set in the kubeconfig on purpose; kubectl does not warn either.
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if errors:
        raise _not_usable(_no_login(errors[0], cluster.server))
    try:
        answer = cluster.ask("GET", "/version")
        cluster.ask("GET", "/api/v1")  # every authenticated user may read it
    except ClusterError as error:
        raise _not_usable(_refused(error, cluster.server)) from None
    return cluster, str(mapping(answer).get("gitVersion", "?"))


@contextmanager
def _login_errors() -> Iterator[list[str]]:
    """Collect errors that the client's library only logs, such as a failed credential program."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            errors.append(record.getMessage())

    errors: list[str] = []
    handler, root = Collector(logging.ERROR), logging.getLogger()
    root.addHandler(handler)
    try:
        yield errors
    finally:
        root.removeHandler(handler)


def _no_kubeconfig(said: str, file: Path | None) -> str:
    """Say which kubeconfig is missing or incomplete, by what the client said."""
    if "No configuration found" in said:
        where = f"at {file}" if file else "at KUBECONFIG or ~/.kube/config"
        return f"there is no kubeconfig {where}. Name a file with --kubeconfig"
    missing = _NO_CONTEXT.search(said)
    if missing:
        return f"the kubeconfig has no {missing[2]} '{missing[1]}'. {_CHOOSE}"
    if "key current-context" in said:
        return f"{file or 'the kubeconfig'} has no current-context. Name a context with --context"
    return f"{said.removeprefix('Invalid kube-config file. ')}. {_CHOOSE}"


def _no_login(error: str, server: str) -> str:
    """Say why the program that gives credentials failed."""
    missing = _NO_PROGRAM.search(error)
    if missing:
        return (
            f"the kubeconfig gets the credentials for {server} from the program '{missing[1]}', "
            "which is not installed. Install it, or put it on PATH"
        )
    why = _flat(error).removeprefix("exec: ")
    return (
        f"the program in the kubeconfig that gets the credentials for {server} has failed: {why}. "
        "Log in again"
    )


def _refused(error: ClusterError, server: str) -> str:
    """Say why the server refused a request: credentials, certificate, or no answer."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        return (
            f"{server} does not accept the credentials of the kubeconfig: they have expired or are "
            "of another cluster. Log in again, or name another context with --context"
        )
    if error.status == HTTPStatus.FORBIDDEN:
        return f"{server} requires credentials. Log in, or {_CHOOSE.lower()}"
    said = _flat(str(error))
    if "certificate has expired" in said or "certificate expired" in said:
        return f"{server}: a certificate has expired: {said}. Log in again, or renew it"
    if "certificate verify failed" in said or "CERTIFICATE" in said:
        seen = "presents a certificate that the kubeconfig's CA has not signed"
        return f"{server} {seen}. {_CHOOSE}"
    return f"{server} does not answer: {_NOISE.sub('', said)}. Start it or connect to it. {_CHOOSE}"


def _not_usable(text: str) -> ClusterError:
    return ClusterError(0, "NotUsable", text)


def _flat(text: str) -> str:
    return " ".join(text.split()).rstrip(".")[:300]


# Asks a program's cluster one question while the program runs, and waits only for a while.
#
# Every error is ignored: the provider may use other credentials, and it reports what it meets.


PATIENCE = 15
"""Seconds to wait for an answer."""
Answer = TypeVar("Answer")


def ask(
    stated: str | None, context: str | None, question: Callable[[Cluster], Answer]
) -> tuple[str, Answer] | None:
    """Return the cluster's address, to be shown, and the answer; None if there is none in time.

    Args:
        stated: A kubeconfig or its path; None: the kubeconfig of the shell.
        context: Its context; None for the current one.
        question: Reads from the cluster.
    """
    found: list[tuple[str, Answer]] = []

    def read() -> None:
        with suppress(Exception):  # its text may contain a credential
            cluster, _ = open_cluster(_kubeconfig(stated), context)
            found.append((cluster.server, question(cluster)))

    # A login program may wait forever, and so may a server.
    asking = Thread(target=read, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    if not found:
        return None
    # A kubeconfig in the config is a secret, and its server came with it.
    return (SECRET if is_kubeconfig_text(stated) else found[0][0]), found[0][1]


def _kubeconfig(stated: str | None) -> Kubeconfig | None:
    if is_kubeconfig_text(stated):
        content: Mapping[str, Any] = yaml.safe_load(stated or "")
        return content
    return Path(stated).expanduser() if stated else None
