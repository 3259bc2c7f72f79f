"""MatrixInfer's programs are those that a user gives, and what is missing is named."""

import random
from pathlib import Path

import pytest

from conformance.matrixinfer.cluster import FILES, VARIABLE, given
from conformance.matrixinfer.created_objects import draw
from kthena_components.systems.matrixinfer.emit import ApiGroup
from toolchain.programs import ToolchainError

OLD = ApiGroup.MATRIXINFER


def programs(folder: Path, group: ApiGroup) -> Path:
    """Write files with the names of the programs and of the CRD."""
    place = folder / group.value
    place.mkdir()
    for name in (*FILES, f"{group.value}_modelinfers.yaml"):
        (place / name).touch()
    return place


def test_without_the_variable_nothing_is_given() -> None:
    assert given({}) == given({VARIABLE: ""}) == {}


def test_one_group_is_enough(tmp_path: Path) -> None:
    place = programs(tmp_path, OLD)
    assert given({VARIABLE: str(tmp_path)}) == {OLD: place}
    newer = programs(tmp_path, ApiGroup.VOLCANO)
    assert given({VARIABLE: str(tmp_path)}) == {OLD: place, ApiGroup.VOLCANO: newer}


def test_a_folder_of_something_else_is_no_success(tmp_path: Path) -> None:
    message = f"{VARIABLE} is {tmp_path}, which has no folder workload.matrixinfer.ai or "
    with pytest.raises(ToolchainError, match=message):
        given({VARIABLE: str(tmp_path)})


@pytest.mark.parametrize(
    ("file", "named"),
    [*((name, name) for name in FILES), (f"{OLD.value}_modelinfers.yaml", "CRD of ModelInfer")],
)
def test_a_missing_file_is_named(tmp_path: Path, file: str, named: str) -> None:
    (programs(tmp_path, OLD) / file).unlink()
    with pytest.raises(ToolchainError, match=f"{OLD.value} has no {named}"):
        given({VARIABLE: str(tmp_path)})


def test_the_servings_are_for_the_group_and_differ() -> None:
    found = draw(random.Random(1), 5, ApiGroup.VOLCANO)
    assert {args["backend_options"]["api_group"] for args in found} == {"workload.volcano.sh"}
    assert len(found) == 5
