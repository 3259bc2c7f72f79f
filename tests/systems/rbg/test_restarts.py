"""RoleBasedGroup: which changes restart its pods, as a review tells it."""

import pytest

from kthena_components.cli.review.planned_changes import planned_changes
from kthena_components.cli.review.preview import Step
from tests.cli.previews import urn
from tests.support import groups
from tests.support.peers import Manifest

EACH = "instance after instance of each role restarts"
IN_ALL = f"in all groups at once, {EACH}"
POD = "spec.containers[0].image"


def told(body: Manifest, path: str) -> tuple[str, str]:
    of = urn(f"kubernetes:{body['apiVersion']}:{body['kind']}", "a")
    step = Step(op="update", urn=of, old=body, new=body, outputs={}, paths=(path,))
    (change,) = planned_changes([step])
    return change.effect.value, change.words


@pytest.mark.parametrize(
    "path",
    [
        f"roleTemplates[0].template.{POD}",
        f"roles[1].standalonePattern.template.{POD}",
        f"roles[1].leaderWorkerPattern.templateRef.patch.{POD}",
        "roles[1].leaderWorkerPattern.workerTemplatePatch.metadata.labels.role",
        "roles[1].leaderWorkerPattern.size",
        f"roles[1].customComponentsPattern.components[2].template.{POD}",
        "roles[1].customComponentsPattern.components[2].size",
        f"roles[1].template.{POD}",
        f"roles[1].leaderWorkerSet.patchWorkerTemplate.{POD}",
        "roles[1].leaderWorkerSet.size",
        "roles[1].engineRuntimes[0].profileName",
        "roles[1]",
        "roles",
    ],
)
def test_what_pods_are_made_of_restarts_them(path: str) -> None:
    assert told(groups.RBG, f"spec.{path}") == ("Restarted", EACH)
    for of in ("groupTemplate.spec", "template"):
        assert told(groups.RBG_SET, f"spec.{of}.{path}") == ("Restarted", IN_ALL)


def test_what_pods_are_not_made_of_restarts_none() -> None:
    assert told(groups.RBG, "spec.roles[1].replicas")[0] == "Scaled"
    assert told(groups.RBG_SET, "spec.replicas")[0] == "Scaled"
    for path in ("dependencies[0]", "rolloutStrategy.rollingUpdate.maxSurge", "name"):
        assert told(groups.RBG, f"spec.roles[1].{path}")[0] == "Changed in place"
