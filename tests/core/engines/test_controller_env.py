"""The list of the variables that controllers set holds what the systems say of theirs."""

from collections.abc import Iterator

import pytest

from kthena_components.core.engines.placeholders import LATE_VARIABLES, misspelled, numbers_pods
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.controller_variables import PodVariables
from kthena_components.core.values.read import group_kind
from kthena_components.systems import find_kind
from tests.support.for_each import for_each
from tests.toughness.corpus import bases

ONLY_THERE = {"PORT": "Knative sets it; elsewhere, scripts name a variable of their own so"}
"""Variables that are late in the objects of one system only, each with the reason."""


def told() -> Iterator[tuple[str, PodVariables]]:
    for name, body in bases().items():
        kind = find_kind(group_kind(body))
        if kind is not None and kind.pod_variables is not None:
            yield name, kind.pod_variables(kind.view(read_object(body)))


TOLD = dict(told())


def test_controllers_of_several_systems_tell_something() -> None:
    assert len({name.partition("-")[0] for name in TOLD}) >= 5


@for_each("name", TOLD)
def test_each_variable_that_a_controller_sets_is_late(name: str) -> None:
    told = TOLD[name]
    named = (*told.size, *told.leader, *told.rank, *told.ordinal)
    prefixed = (f"{prefix}ANY" if prefix[-1] == "_" else prefix for prefix in told.others)
    every = (each for each in (*named, *prefixed) if each not in ONLY_THERE)
    assert [each for each in every if each not in LATE_VARIABLES] == []
    assert [each for each in (*told.rank, *told.ordinal) if not numbers_pods(each)] == []


@pytest.mark.parametrize("name", ["VC_TASK_INDEX", "VK_TASK_INDEX", "JOB_COMPLETION_INDEX"])
def test_indices_of_jobs_number_the_pods(name: str) -> None:
    assert name in LATE_VARIABLES
    assert numbers_pods(name)


def test_other_names_are_not_late() -> None:
    assert [name for name in ("HOME", "TP", "MODEL", "VCPUS") if name in LATE_VARIABLES] == []


def test_a_misspelled_name_is_like_one_of_a_controller() -> None:
    slips = ("LWS_GROUP_SIX", "POD_IDEX", "GROUP_SIX", "VC_TASK_INDX", "RBG_ROLE_IDEX")
    assert [name for name in slips if not misspelled(name)] == []
    others = (*LATE_VARIABLES, "NODE_INDEX", "LWS_NAME", "GROVE_PCSG_INDEX", "VC_HEAD_HOSTS")
    assert [name for name in others if misspelled(name)] == []
