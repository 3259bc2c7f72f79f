"""Asks a program's cluster one question while the program runs, and waits only for a while.

Every error is ignored: the provider may use other credentials, and it reports what it meets.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import yaml

from kthena_components.cluster.client import Cluster, Kubeconfig
from kthena_components.cluster.connect import open_cluster
from kthena_components.core.plan.stack_file import is_kubeconfig_text
from kthena_components.core.values.display import SECRET

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
