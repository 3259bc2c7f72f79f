"""Input that is refused: everything is said at once, and nothing is registered."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pulumi
import pytest

from kthena_components import ModelServing, ModelServingArgs, RefusedError
from kthena_components.core.findings import Finding
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from kthena_components.resources import _call
from tests.resources.build import group, late, queue, role, serving, topology
from tests.support.for_each import for_each
from tests.support.recorder import attempt
from tests.support.specs import ENGINE_RAY, GROUP, ROLE, changed
from tests.toughness.guard import no_hang


def refusal(program: Callable[[], object]) -> RefusedError:
    tried = attempt(program)
    assert tried.resources == []
    assert tried.logs == []
    assert isinstance(tried.error, RefusedError), tried.error
    return tried.error


def with_late_count() -> dict[str, Any]:
    args = changed(ENGINE_RAY)
    args["roles"][0]["replicas"] = late("2")
    return args


def test_an_output_in_place_of_a_count_is_refused() -> None:
    assert str(refusal(lambda: serving(with_late_count()))) == (
        "ModelServing 'chat' is refused: 1 problem\n  roles[0].replicas: is an Output, whose value "
        "is not known while the plan is built; counts and names decide how many resources there "
        "are. Pass a plain value, from the program or from the stack's config. [known-when-planned]"
    )


def test_an_output_in_place_of_a_hyper_nodes_name_is_refused() -> None:
    def program() -> None:
        topology({"hyper_nodes": [{"name": late("rack"), "tier": 1, "nodes": ["node-0"]}]})

    (finding,) = refusal(program).findings
    assert (finding.path, finding.rule) == ("hyper_nodes[0].name", "known-when-planned")


def test_all_problems_are_told_at_once() -> None:
    wrong = changed(ENGINE_RAY, {"replcas": 2, "namespace": "My_Space", "expose.port": 0})
    error = refusal(lambda: serving(wrong))
    assert str(error).splitlines()[0] == "ModelServing 'chat' is refused: 3 problems"
    assert {finding.path for finding in error.findings} == {"replcas", "namespace", "expose.port"}


def test_gpus_that_do_not_match_the_parallelism_are_refused() -> None:
    error = refusal(lambda: serving(changed(ENGINE_RAY, {"roles[0].resources.gpus_per_pod": 4})))
    assert "world-size-equals-gpus" in {finding.rule for finding in error.findings}


def test_data_that_cannot_be_read_is_refused() -> None:
    error = refusal(lambda: serving({**ENGINE_RAY, "roles": [pulumi.ResourceOptions()]}))
    assert "roles[0]: is of the type ResourceOptions, but must be plain data" in str(error)


@pytest.mark.parametrize(
    ("program", "subject"),
    [
        (lambda: serving({}), "ModelServing 'chat'"),
        (lambda: group({**GROUP, "replicas": 2}), "ServingGroup 'chat'"),
        (lambda: role({**ROLE, "serving": "Chat"}), "Role 'decode'"),
        (lambda: topology({}), "HyperNodeTopology 'network'"),
        (lambda: queue({"weight": 0}), "Queue 'research'"),
    ],
    ids=["serving", "group", "role", "topology", "queue"],
)
def test_every_component_refuses_before_it_registers(
    program: Callable[[], object], subject: str
) -> None:
    assert str(refusal(program)).startswith(f"{subject} is refused: 1 problem\n  ")


def test_a_token_never_shows_in_a_message() -> None:
    seen = f"there is no node '{OUTPUT_OPEN}7{OUTPUT_CLOSE}'"
    error = RefusedError([Finding(path="nodes", seen=seen, rule="node")], "Topology 'net'")
    assert str(error) == (
        "Topology 'net' is refused: 1 problem\n  nodes: there is no node '<output>'. [node]"
    )


def test_pulumi_prints_a_refusal_without_a_traceback() -> None:
    # The language host logs the text of a RunError; of any other error it logs the traceback.
    assert issubclass(RefusedError, pulumi.RunError)


def test_a_program_in_another_language_is_told_the_properties() -> None:
    error = refusal(lambda: serving(changed(ENGINE_RAY, {"replicas": -1})))
    assert isinstance(error, pulumi.InputPropertiesError)
    assert error.errors == [
        {
            "property_path": "replicas",
            "reason": "replicas: is -1, but must be at least 0. Write at least 0. [range]",
        }
    ]


def with_hf_config(stated: object) -> dict[str, Any]:
    args = changed(ENGINE_RAY)
    args["roles"][0]["engine"]["hf_config"] = stated
    return args


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("none.json", None, "cannot be read: No such file or directory"),
        ("broken.json", "{", "is not JSON"),
        ("list.json", "[]", "contains no JSON object"),
    ],
)
def test_a_config_json_that_cannot_be_read_is_refused(
    tmp_path: Path, name: str, text: str | None, sentence: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    (finding,) = refusal(lambda: serving(with_hf_config(str(path)))).findings
    assert finding.path == "roles[0].engine.hf_config"
    assert finding.seen.endswith(f"{name} {sentence}")


def test_a_config_json_is_read_and_checked(tmp_path: Path) -> None:
    sizes = {"num_attention_heads": 6, "num_hidden_layers": 80}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    for stated in (sizes, str(tmp_path), str(tmp_path / "config.json")):
        told = str(refusal(lambda stated=stated: serving(with_hf_config(stated))))  # type: ignore[misc]
        assert "splits 6 attention heads over tensor 8" in told


def test_a_role_by_itself_reads_its_config_json_too(tmp_path: Path) -> None:
    args = changed(ROLE)
    args["engine"]["hf_config"] = str(tmp_path)
    (finding,) = refusal(lambda: role(args)).findings
    assert finding.path == "engine.hf_config"


OPTIONS = pulumi.ResourceOptions
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], dict[str, str]]] = {
    "fields by keyword": (("chat",), {"replicas": 2}, {
        "replicas": 'Write it as a field of args: ModelServing("chat", {"replicas": …})',
        "args": 'Write ModelServing("chat", {…}, pulumi.ResourceOptions(…))'}),
    "a misspelt keyword": (("chat", ENGINE_RAY), {"opt": None}, {"opt": "Write opts"}),
    "a misspelt field": (("chat", ENGINE_RAY), {"replcas": 2}, {
        "replcas": 'Write it as a field of args: ModelServing("chat", {"replicas": …})'}),
    "nothing": ((), {}, {"name": "Write ModelServing", "args": "Write ModelServing"}),
    "no name": ((ENGINE_RAY,), {}, {"name": "Write ModelServing"}),
    "options as a map": (("chat", ENGINE_RAY, {"protect": True}), {}, {
        "opts": "Write pulumi.ResourceOptions(protect=…)"}),
    "args in two maps": (("chat", ENGINE_RAY, {"replicas": 2}), {}, {
        "opts": "Put its fields into args"}),
    "options first": (("chat", OPTIONS(), ENGINE_RAY), {}, {"opts": "Write ModelServing"}),
    "four": (("chat", ENGINE_RAY, None, None), {}, {"": "Write ModelServing"}),
    "a name twice": (("chat", ENGINE_RAY), {"name": "chat"}, {"name": "Keep one of the two"}),
}  # fmt: skip


@for_each("stated, named, expected", CALLS.values(), ids=CALLS)
def test_a_wrong_call_is_refused(
    stated: tuple[Any, ...], named: dict[str, Any], expected: dict[str, str]
) -> None:
    call: Callable[..., object] = ModelServing
    found = {one.path: str(one) for one in refusal(lambda: call(*stated, **named)).findings}
    assert found.keys() == expected.keys()
    for path, text in expected.items():
        assert f" {text}" in found[path]


class Chat(ModelServing):
    """A component of a program, with arguments of its own."""

    def __init__(self, size: int) -> None:
        super().__init__("chat", cast("ModelServingArgs", {**ENGINE_RAY, "replicas": size}))


def test_a_subclass_takes_other_arguments() -> None:
    tried = attempt(lambda: Chat(size=2))
    assert tried.error is None
    assert tried.resources


def test_what_contains_itself_is_refused() -> None:
    def program(place: str) -> Callable[[], object]:
        args = changed(ENGINE_RAY)
        role_ = args["roles"][0]
        holders = {"args": args, "roles": args["roles"], "overlay": {"metadata": {}}, "role": role_}
        role_["overlay"] = holders["overlay"]
        own = holders[place]
        if isinstance(own, list):
            own.append(own)
        else:
            own["again"] = own
        return lambda: serving(args)

    for place, path in {
        "args": "again", "roles": "roles[1]", "overlay": "roles[0].overlay.again",
        "role": "roles[0].again",
    }.items():  # fmt: skip
        (finding,) = refusal(program(place)).findings
        assert (finding.path, finding.seen, finding.rule) == (path, "contains itself", "type")


def test_what_is_shared_many_times_is_walked_once() -> None:
    shared: list[Any] = []
    for _ in range(100):
        shared = [shared, shared]
    with no_hang("lists that share their members"):
        assert list(_call._endless({"roles": shared})) == []


def test_what_is_too_deep_for_any_walk_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    args = changed(ENGINE_RAY)
    args["roles"][0]["overlay"] = deep
    (finding,) = refusal(lambda: serving(args)).findings
    assert (finding.path, finding.seen) == ("roles", "is more than 250 maps and lists deep")


def test_one_map_may_stand_in_many_places() -> None:
    shared: dict[str, Any] = {"x": "y"}
    for _ in range(4):
        shared = {"a": shared, "b": shared}
    args = changed(ENGINE_RAY)
    args["note"] = shared
    assert [each.rule for each in refusal(lambda: serving(args)).findings]
