"""PodCliqueSet: which changes restart its pods, as a review tells it."""

import pytest

from kthena_components.cli.review.planned_changes import planned_changes
from kthena_components.cli.review.preview import Step
from tests.cli.previews import urn
from tests.support.groups import GROVE
from tests.support.peers import changed

OF = urn("kubernetes:grove.io/v1alpha1:PodCliqueSet", "a")


def told(path: str, strategy: object = None) -> tuple[str, str]:
    body = changed(GROVE, {} if strategy is None else {"spec/updateStrategy": strategy})
    step = Step(op="update", urn=OF, old=body, new=body, outputs={}, paths=(path,))
    (change,) = planned_changes([step])
    return change.effect.value, change.words


@pytest.mark.parametrize(
    "path",
    [
        "cliques[1].spec.podSpec.containers[0].image",
        "cliques[1].labels.app",
        'cliques[1].annotations["a.b/c"]',
        "cliques[1]",
        "cliques",
        "priorityClassName",
    ],
)
def test_what_pods_are_made_of_restarts_them(path: str) -> None:
    assert told(f"spec.template.{path}") == ("Restarted", "one replica after another restarts")


@pytest.mark.parametrize("strategy", [{"type": "RollingRecreate"}, {}, 5, "OnDelete"])
def test_a_strategy_that_rolls_is_told_as_the_usual_one(strategy: object) -> None:
    assert told("spec.template.priorityClassName", strategy)[1].startswith("one replica after")


def test_pods_that_nobody_deletes_keep_running() -> None:
    words = told("spec.template.priorityClassName", {"type": "OnDelete"})[1]
    assert words == "a pod restarts when it is deleted"


def test_what_pods_are_not_made_of_restarts_none() -> None:
    assert told("spec.replicas")[0] == "Scaled"
    for path in ("cliques[1].spec.replicas", "podCliqueScalingGroups[0].replicas"):
        assert told(f"spec.template.{path}") == ("Scaled", "remaining pods keep running")
