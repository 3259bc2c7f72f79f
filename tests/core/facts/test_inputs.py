"""What a container takes from ConfigMaps: variables in Kubernetes' order, and mounted files."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.engines.files import read_file
from kthena_components.core.engines.placeholders import Scope, expand_kubernetes
from kthena_components.core.facts.container import read_volumes
from kthena_components.core.facts.container_commands import read_argv, read_inputs
from kthena_components.core.facts.context import Context, gather, in_object
from kthena_components.core.facts.files import PodVolumes
from kthena_components.core.values.unknown import (
    OUTPUT_CLOSE,
    OUTPUT_OPEN,
    Blank,
    FilledIn,
    MaybeText,
    Unknown,
)
from tests.support.strategies import json_trees

Json = dict[str, Any]
LATE = f"{OUTPUT_OPEN}3{OUTPUT_CLOSE}"
BLANK, PREVIEW = Blank("SIZE"), "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
ABSENT = "ConfigMap 'none' is not among the objects that are checked"


def config_map(name: str = "sizes", namespace: str = "serving", **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


SIZES = config_map(data={"TP": "8", "PP": "$(TP)", "config.yaml": "a: 1", "1 x": "no variable"})
MORE = config_map("more", data={"TP": "4"}, binaryData={"weights": "AAAA"})


def inputs(container: Json, *others: Json, volumes: object = (), **injected: str) -> Any:
    pod: Json = {
        "metadata": {"namespace": "serving"},
        "spec": {"containers": [], "volumes": volumes},
    }
    context = in_object(Context(config_maps=gather([SIZES, MORE, *others])), pod)
    return read_inputs(container, PodVolumes(read_volumes(pod["spec"]), context), "c", injected)


def value(name: str, container: Json, *others: Json, **injected: str) -> MaybeText | None:
    given_ = inputs(container, *others, **injected)
    return Scope(given_.env, {}, hidden=given_.hidden).look_up(name)


def key(name: str, of: str = "sizes", **more: Any) -> Json:
    return {"valueFrom": {"configMapKeyRef": {"name": of, "key": name, **more}}}


def env(**values: Any) -> Json:
    items = [v if isinstance(v, dict) else {"value": v} for v in values.values()]
    return {"env": [{"name": n, **v} for n, v in zip(values, items, strict=True)]}


def env_from(*names: str, prefix: str = "") -> Json:
    return {"envFrom": [{"prefix": prefix, "configMapRef": {"name": name}} for name in names]}


@pytest.mark.parametrize(
    ("container", "name", "expected"),
    [
        (env(A=key("TP")), "A", "8"),
        (env_from("sizes"), "TP", "8"),
        (env_from("sizes", "more"), "TP", "4"),
        (env_from("more", "sizes"), "TP", "8"),
        (env_from("sizes", prefix="V_"), "V_TP", "8"),
        (env_from("sizes", prefix="V_"), "TP", None),
        (env_from("sizes"), "1 x", None),
        ({**env_from("sizes"), **env(TP="2")}, "TP", "2"),
        ({**env_from("sizes"), **env(A="$(TP)")}, "A", "8"),
        (env(B="8", A="$(B)"), "A", "8"),
    ],
)
def test_variables_come_in_the_order_of_kubernetes(
    container: Json, name: str, expected: str | None
) -> None:
    assert value(name, container) == expected


def test_a_value_of_a_config_map_is_not_expanded() -> None:
    container = env(A=key("PP"), B="x$(A)")

    assert (value("A", container), value("B", container)) == ("$(TP)", "x$(TP)")


def test_a_text_is_replaced_before_the_apply_unless_it_is_known_only_when_the_pod_starts() -> None:
    late = value("A", env(A=Blank("${MASTER}")))
    stays = value("A", env(A=Blank("${LWS_LEADER_ADDRESS}:5000")))

    assert isinstance(late, FilledIn)
    assert stays == "${LWS_LEADER_ADDRESS}:5000"


def test_a_variable_that_is_set_twice_has_its_last_value() -> None:
    container = {"env": [{"name": "A", "value": n} for n in "12"]}

    assert value("A", container) == "2"


def test_what_a_controller_adds_is_seen_by_all() -> None:
    assert value("A", env(A="$(GROUP_SIZE)", GROUP_SIZE="9"), GROUP_SIZE="2") == "2"


@pytest.mark.parametrize(
    ("container", "name", "because"),
    [
        (env(A=key("TP", "none")), "A", f"the value of A is not in the manifest: {ABSENT}"),
        (
            env(A=key("TP", "none", optional=True)),
            "A",
            f"the value of A is not in the manifest: {ABSENT}, and is optional",
        ),
        (env(A=key("tp")), "A", "ConfigMap 'sizes' has no key 'tp'"),
        (env(A=key("weights", "more")), "A", "key 'weights' of ConfigMap 'more' is binary"),
        (env(A=key(LATE)), "A", "the key of A in ConfigMap 'sizes' is not known yet"),
        (env(A=key("TP", LATE)), "A", ("the value of A is not in the manifest: "
         "the name of its ConfigMap is not known yet")),
        (env_from("none"), "TP", f"TP may come from envFrom, where {ABSENT}"),
        ({**env_from("sizes", "none")}, "TP", f"TP may come from envFrom, where {ABSENT}"),
        (
            {"envFrom": [{"secretRef": {"name": "s"}}]},
            "TP",
            "TP may come from envFrom, where Secret 's' is not read",
        ),
        ({"env": LATE}, "TP", "TP may come from env, which is not known yet"),
        ({"envFrom": LATE}, "TP", "TP may come from envFrom, which is not known yet"),
        (
            {"env": [{"name": "TP", "value": "8"}, LATE]},
            "TP",
            "TP may come from env, a part of which is not known yet",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_says_why(container: Json, name: str, because: str) -> None:
    assert value(name, container) == Unknown(because)


def test_env_wins_over_a_source_that_is_not_known() -> None:
    assert value("TP", {**env_from("none"), **env(TP="2")}) == "2"
    assert value("TP", {**env_from("none", prefix="V_"), **env_from("sizes")}) == "8"


def test_data_that_is_not_known_yet_hides_every_key() -> None:
    late = config_map("late", data=LATE)

    because = "key 'TP' of ConfigMap 'late' is not known: its data is not known yet"
    assert value("A", env(A=key("TP", "late")), late) == Unknown(because)
    because = "TP may come from envFrom, where ConfigMap 'late' is not known yet"
    assert value("TP", env_from("late"), late) == Unknown(because)


def test_a_missing_key_is_noted_where_it_is_named() -> None:
    (missing,) = inputs(env(A=key("tp"), B=key("tp", optional=True))).missing

    assert missing.path == "c.env[0].valueFrom.configMapKeyRef.key"
    assert missing.because == "ConfigMap 'sizes' has no key 'tp'"


@pytest.mark.parametrize(
    ("namespace", "stated", "found"),
    [
        ("serving", "serving", True),
        ("", "serving", True),
        ("serving", "", True),
        ("other", "serving", False),
    ],
)
def test_a_config_map_is_found_in_its_namespace(namespace: str, stated: str, found: bool) -> None:
    maps = gather([config_map("a", namespace, data={})])

    assert isinstance(maps.find("a", stated), Unknown) is not found


def test_config_maps_of_one_name_that_differ_are_not_told_apart() -> None:
    same, other = config_map("a", data={"x": "1"}), config_map("a", data={"x": "2"})

    assert not isinstance(gather([same, same]).find("a", "serving"), Unknown)
    assert gather([same, other, same]).find("a", "serving") == Unknown(
        "several ConfigMap 'a' differ"
    )


def files(source: Json, path: str, **mount: Any) -> tuple[Any, Any]:
    container = {"volumeMounts": [{"name": "v", "mountPath": "/etc/v/", **mount}]}
    found = inputs(container, volumes=[{"name": "v", **source}])
    return read_file(found.files, path), [key.because for key in found.missing]


SOURCE = {"configMap": {"name": "sizes"}}
PROJECTED = {"projected": {"sources": [SOURCE, {"configMap": {"name": "more"}}]}}
WITH_SECRET = {"projected": {"sources": [SOURCE, {"secret": {"name": "s"}}]}}


@pytest.mark.parametrize(
    ("source", "path", "mount"),
    [
        (SOURCE, "/etc/v/config.yaml", {}),
        (SOURCE, "/etc/v", {"subPath": "config.yaml"}),
        (PROJECTED, "/etc/v/config.yaml", {}),
        (WITH_SECRET, "/etc/v/config.yaml", {}),
        (
            {"configMap": {"name": "sizes", "items": [{"key": "config.yaml", "path": "a/b.yaml"}]}},
            "/etc/v/a/b.yaml",
            {},
        ),
        (
            {"configMap": {"name": "sizes", "items": [{"key": "config.yaml", "path": "a/b.yaml"}]}},
            "/etc/v/b.yaml",
            {"subPath": "a"},
        ),
    ],
)
def test_a_key_becomes_a_file(source: Json, path: str, mount: Json) -> None:
    assert files(source, path, **mount) == ("a: 1", [])


@pytest.mark.parametrize(
    ("source", "mount", "because"),
    [
        ({"configMap": {"name": "none"}}, {}, ABSENT),
        ({"configMap": {"name": "none", "optional": True}}, {}, f"{ABSENT}, and is optional"),
        ({"configMap": LATE}, {}, "it may come from a source that is not read"),
        (WITH_SECRET, {}, "it may come from a source that is not read"),
        ({"configMap": {"name": "sizes", "items": LATE}}, {}, ("the items of its volume are not "
         "known yet")),
        (SOURCE, {"subPathExpr": "$(X)"}, "the path inside its volume is not known"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_known_says_why(source: Json, mount: Json, because: str) -> None:
    assert files(source, "/etc/v/other.yaml", **mount)[0] == Unknown(because)


def test_items_and_sub_paths_without_their_key_are_noted() -> None:
    items = {"configMap": {"name": "sizes", "items": [{"key": "x", "path": "y"}]}}

    assert files(items, "/etc/v/y")[1] == ["ConfigMap 'sizes' has no key 'x'"]
    assert files(SOURCE, "/etc/v", subPath="x")[1] == [
        "ConfigMap 'sizes' has no key that becomes 'x'"
    ]


FIELDS = ("env", "envFrom", "volumeMounts", "command", "args")


@pytest.mark.property
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, json_trees())),
    json_trees(),
    json_trees(),
)
def test_nothing_makes_the_reader_raise(container: Json, volumes: object, data: object) -> None:
    given_ = inputs(container, config_map("a", data=data, binaryData=data), volumes=volumes)
    scope = Scope(given_.env, {}, hidden=given_.hidden, files=given_.files)

    assert all(isinstance(expand_kubernetes(f"$({name})", scope), str) for name in given_.env)


@given(st.lists(st.one_of(st.text(), st.integers(), st.sampled_from([LATE, BLANK, PREVIEW, 8.0]))))
def test_words_of_a_container_are_read_alike_however_they_are_told(items: list[Any]) -> None:
    one_by_one = [read_argv({"command": ["c"], "args": [item]})[1:] for item in items]
    assert read_argv({"command": ["c"], "args": items})[1:] == [
        word for words in one_by_one for word in words
    ]
