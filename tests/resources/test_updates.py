"""An update that the cluster's controller would not do as stated is refused, before it is made."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from kthena_components.checker.waivers import PREFIX
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.manifest import Manifest
from kthena_components.resources._access import Access
from kthena_components.resources._updates import RefusedUpdateError, reasons, refuse_by_cluster
from tests.cluster.objects import pod
from tests.support.discovery import KNOWN, discovery, paths
from tests.support.specs import ENGINE_NATIVE, changed
from tests.systems.kthena.test_partition_restores import serving, stored

KINDS = {**KNOWN, "apps/v1": ("StatefulSet", "ControllerRevision")}
RULE = "kthena-partition-restores"


ROLLING = {"rolling_update_configuration": {"partition": 1}}
HELD = changed(ENGINE_NATIVE, {"backend": "kthena", "replicas": 2, "rollout_strategy": ROLLING})
TODAY = date(2026, 6, 30)


def manifest() -> Manifest:
    manifests = compile_serving(HELD).manifests
    return next(each for each in manifests if each.kind == "ModelServing")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Access]]:
    """A cluster whose every answer is a ModelServing and, as a list, its ControllerRevisions."""
    opened: list[Any] = []

    def answer(*revisions: dict[str, Any], **server: Any) -> Access:
        everything = {**serving(1, None), "items": list(revisions)}
        opened.append(discovery(known=KINDS, everything=everything, **server))
        path = tmp_path / "kubeconfig"
        path.write_text(opened[-1].__enter__())
        return Access(str(path), None)

    yield answer
    for each in opened:
        each.__exit__(None, None, None)


def test_what_kthena_stored_is_compared(cluster: Callable[..., Access]) -> None:
    access, body = cluster(stored(2)), manifest().body
    body = {**body, "spec": {**body["spec"], "template": serving(1)["spec"]["template"]}}
    paths.clear()
    with pytest.raises(RefusedUpdateError, match="Kthena stored 2 when it created groups"):
        refuse_by_cluster(manifest(), access, body)
    assert any("/controllerrevisions" in path and "chat" in path for path in paths)
    waivers = {f"{PREFIX}{RULE}": "2999-12-31 known"}
    waived = {**body, "metadata": {**body["metadata"], "annotations": waivers}}
    refuse_by_cluster(manifest(), access, waived)


def test_a_waiver_of_the_component_reaches_its_object() -> None:
    compiled = compile_serving(HELD | {"waivers": {RULE: "2999-12-31 known"}}, today=TODAY)
    annotations = next(m.body["metadata"]["annotations"] for m in compiled.manifests)
    assert annotations[f"{PREFIX}{RULE}"] == "2999-12-31 known"
    assert not [finding for finding in compiled.findings if finding.rule == "waiver"]


def test_nothing_is_refused_for_what_cannot_be_read(cluster: Callable[..., Access]) -> None:
    refuse_by_cluster(manifest(), cluster(says=b"no JSON"), serving(1))
    refuse_by_cluster(manifest(), Access("/missing", None), serving(1))


def test_a_failure_is_explained_as_status_does(cluster: Callable[..., Access]) -> None:
    held = {"reason": "ImagePullBackOff", "message": "no such tag"}
    statuses = [{"name": "engine", "state": {"waiting": held}}]
    stuck = pod("chat-0-a", node="n", phase="Pending", gang="", containerStatuses=statuses)
    other = pod("code-0-a", "code-0", node="n", phase="Pending", gang="")
    found = reasons(cluster(stuck, other), "serving", "chat")
    assert "serving/chat-0-a: container 'engine': ImagePullBackOff. no such tag" in found
    assert not any("code" in reason for reason in found)
    assert reasons(Access("/missing", None), "serving", "chat") == []
