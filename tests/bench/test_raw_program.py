"""The raw program registers exactly what the package registers, or the ratio is none."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from bench import recording
from bench.components import deploy
from bench.workload import BACKENDS, servings
from tests.support.recorder import Recorded, record


def package(backend: str) -> None:
    deploy(backend, 2, "rendered")


def requests(recorded: Recorded) -> dict[str, Any]:
    """What the engine was asked for, by URN: all but the places in the source."""
    for item in recorded.resources:
        item.request.ClearField("sourcePosition")
        item.request.ClearField("stackTrace")
        item.request.dependencies.sort()  # gathered in a set
    return {item.urn: (str(item.request), item.outputs) for item in recorded.resources}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_raw_program_makes_the_same_requests(backend: str, tmp_path: Path) -> None:
    kept = tmp_path / "recording.json"
    ours = record(lambda: recording.record(lambda: package(backend), kept))
    raw = record(lambda: recording.replay(kept))
    assert requests(raw) == requests(ours)
    assert len(raw.resources) == {"kthena": 7, "native": 19}[backend]


def test_the_raw_program_needs_nothing_of_the_package(tmp_path: Path) -> None:
    kept = tmp_path / "recording.json"
    record(lambda: recording.record(lambda: package("native"), kept))
    types = {event["type"] for event in json.loads(kept.read_text()) if "type" in event}
    assert "kthena:index:ModelServing" in types
    assert "kthena_components" not in Path(recording.__file__).read_text()


def test_recording_changes_nothing_for_the_next_program(tmp_path: Path) -> None:
    before = pulumi.Resource.__init__, pulumi.ComponentResource.register_outputs
    record(lambda: recording.record(lambda: package("kthena"), tmp_path / "recording.json"))
    assert (pulumi.Resource.__init__, pulumi.ComponentResource.register_outputs) == before


def test_what_cannot_be_recorded_is_an_error(tmp_path: Path) -> None:
    def program() -> None:
        late = {"image": pulumi.Output.from_input("vllm")}
        pulumi.CustomResource("test:index:Thing", "thing", late)

    with pytest.raises(TypeError, match="cannot be recorded"):
        record(lambda: recording.record(program, tmp_path / "recording.json"))


def test_no_two_servings_have_a_command_in_common() -> None:
    models = {serving["roles"][0]["engine"]["model"] for serving in servings("native", 50)}
    assert len(models) == 50
