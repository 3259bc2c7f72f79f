"""RoleBasedGroup, Grove and Dynamo: what holds for a right manifest of each of them."""

import pytest

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.findings import Level
from tests.support import groups
from tests.support.peers import LATE, Manifest, refused, told
from tests.toughness.corpus import places, put


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_a_guide_has_no_mandatory_finding(manifest: Manifest) -> None:
    assert refused(manifest) == []


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_paths_begin_where_the_manifest_stands(manifest: Manifest) -> None:
    facts = read_manifest(manifest, "items[3]")
    assert facts is not None
    for engine in facts.engines:
        for pod in filter(None, (engine.entry, engine.worker)):
            assert pod.gpus_path.startswith("items[3].spec.")
            assert pod.command_path.startswith("items[3].spec.")
            assert all(device.path.startswith("items[3].spec.") for device in pod.devices)


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_any_version_of_the_group_and_no_other_group(manifest: Manifest) -> None:
    group = manifest["apiVersion"].partition("/")[0]
    # Who serves no such version says so; the engines are read all the same.
    found = told({**manifest, "apiVersion": f"{group}/v9"})
    assert [line for line in found if "apiVersion: is " not in line] == told(manifest)
    foreign = told({**manifest, "apiVersion": "example.com/v1"})
    assert ["no rule reads objects of kind" in text for text in foreign] == [True]


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_a_value_that_is_not_known_refuses_nothing(manifest: Manifest) -> None:
    for place in places(manifest):
        if place[0] not in {"apiVersion", "kind"}:
            assert [
                str(finding)
                for finding in check_manifest(put(manifest, place, LATE))
                if finding.level is Level.MANDATORY
            ] == []
