"""HyperNode manifests: what is written, what the CRD asks for, and what foreign ones give."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.findings import Level
from kthena_components.core.topology.spec import (
    HyperNodeSpec,
    HyperNodeTopologySpec,
    TopologyPlan,
    build_topology,
)
from kthena_components.systems.volcano.emit_cluster import emit_hyper_nodes
from kthena_components.systems.volcano.view import read_hyper_node, read_hyper_nodes

TREE = [
    {"name": "spine", "tier": 2, "tier_name": "spine", "children": ["rack-a", "rack-b", "rack-c"]},
    {"name": "rack-a", "tier": 1, "tier_name": "rack", "nodes": ["n-1", "n-2"]},
    {"name": "rack-b", "tier": 1, "node_regex": "^b-[0-9]+$", "labels": {"team": "serving"}},
    {"name": "rack-c", "tier": 1, "node_labels": {"example.com/rack": "c"}},
]
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
names = st.from_regex(r"[a-z0-9]([a-z0-9.]{0,3}[a-z0-9])?", fullmatch=True).filter(
    SUBDOMAIN.fullmatch
)
words = st.from_regex(r"[A-Za-z0-9]{1,4}", fullmatch=True)
labels = st.dictionaries(words, words, max_size=2)
members = st.one_of(
    st.fixed_dictionaries({"nodes": st.lists(names, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"node_regex": words.map("^{}-[0-9]+$".format)}),
    st.fixed_dictionaries({"node_labels": st.dictionaries(words, words, min_size=1, max_size=2)}),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def planned(entries: list[dict[str, Any]]) -> TopologyPlan:
    return build_topology(HyperNodeTopologySpec.model_validate({"hyper_nodes": entries}))


@st.composite
def plans(draw: st.DrawFn) -> TopologyPlan:
    """Draw leaves of every kind, some of them under parents."""
    unique = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    cut = draw(st.integers(1, len(unique)))
    leaves, parents = unique[:cut], unique[cut:]
    under = {leaf: draw(st.sampled_from(parents)) for leaf in leaves} if parents else {}
    entries: list[dict[str, Any]] = [
        {"name": leaf, "tier": 1, "labels": draw(labels), **draw(members)} for leaf in leaves
    ]
    for parent in dict.fromkeys(under.values()):
        below = [leaf for leaf in leaves if under[leaf] == parent]
        entries.append({"name": parent, "tier": 2, "tier_name": draw(words), "children": below})
    return planned(entries)


def hyper_node(*listed: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack"},
        "spec": {"tier": 1, "members": list(listed), **spec},
    }


def member(kind: str, **selector: Any) -> dict[str, Any]:
    return {"type": kind, "selector": selector}


def node(name: object) -> dict[str, Any]:
    return member("Node", exactMatch={"name": name})


def said(manifest: dict[str, Any]) -> str:
    return "\n".join(str(problem) for problem in read_hyper_node(manifest)[1])


def broken_rules(manifest: dict[str, Any]) -> list[str]:
    """Hold a manifest against what the HyperNode CRD and Volcano's webhook ask for."""
    spec = manifest["spec"]
    kept = {
        "top level": set(manifest) == {"apiVersion", "kind", "metadata", "spec"},
        "metadata": set(manifest["metadata"]) <= {"name", "labels"},
        "name": is_subdomain(manifest["metadata"]["name"]),
        "spec": {"tier", "members"} <= set(spec) <= {"tier", "tierName", "members"},
        "tier": type(spec["tier"]) is int and spec["tier"] >= 0,
        "tierName": 1 <= len(spec.get("tierName", "x")) <= 253,
        "members": len(spec["members"]) >= 1,
    }
    for index, listed in enumerate(spec["members"]):
        kept[f"members[{index}]"] = set(listed) == {"type", "selector"} and member_is_legal(listed)
    return [rule for rule, holds in kept.items() if not holds]


def member_is_legal(listed: dict[str, Any]) -> bool:
    match listed["type"], list(listed["selector"].items()):
        case (("Node" | "HyperNode"), [("exactMatch", {"name": name, **rest})]):
            return is_subdomain(name) and not rest
        case "Node", [("regexMatch", {"pattern": str(pattern), **rest})]:
            return bool(re.compile(pattern)) and pattern != "" and not rest
        case "Node", [("labelMatch", {"matchLabels": {**labels}, **rest})]:
            return len(labels) > 0 and not rest
        case _:
            return False


def is_subdomain(name: str) -> bool:
    return 1 <= len(name) <= 253 and SUBDOMAIN.fullmatch(name) is not None


def test_a_tree_is_written_leaves_first() -> None:
    manifests = emit_hyper_nodes(planned(TREE))
    assert list(manifests) == [
        hyper_node(node("n-1"), node("n-2"), tierName="rack") | {"metadata": {"name": "rack-a"}},
        hyper_node(member("Node", regexMatch={"pattern": "^b-[0-9]+$"}))
        | {"metadata": {"name": "rack-b", "labels": {"team": "serving"}}},
        hyper_node(member("Node", labelMatch={"matchLabels": {"example.com/rack": "c"}}))
        | {"metadata": {"name": "rack-c"}},
        hyper_node(
            *(member("HyperNode", exactMatch={"name": f"rack-{rack}"}) for rack in "abc"),
            tier=2,
            tierName="spine",
        )
        | {"metadata": {"name": "spine"}},
    ]


def test_the_keys_of_a_manifest_stand_in_the_usual_order() -> None:
    manifest = emit_hyper_nodes(planned(TREE))[0]
    assert list(manifest) == ["apiVersion", "kind", "metadata", "spec"]
    assert list(manifest["spec"]) == ["tier", "tierName", "members"]


@given(plans())
def test_what_is_written_reads_back_as_the_plan(plan: TopologyPlan) -> None:
    read = read_hyper_nodes(emit_hyper_nodes(plan))
    assert read.problems == ()
    assert build_topology(HyperNodeTopologySpec(hyper_nodes=list(read.hyper_nodes))) == plan
    assert read.hyper_nodes == plan.hyper_nodes


@given(plans())
def test_what_is_written_keeps_the_rules_of_the_crd(plan: TopologyPlan) -> None:
    for manifest in emit_hyper_nodes(plan):
        assert broken_rules(manifest) == []


def test_other_kinds_and_other_groups_are_passed_over() -> None:
    named = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    other = hyper_node(node("n")) | {"apiVersion": "example.com/v1alpha1"}
    foreign = [named, other, {"kind": "HyperNode"}, "text", None]
    read = read_hyper_nodes([*foreign, hyper_node(node("n"))])
    assert [entry.name for entry in read.hyper_nodes] == ["rack"]
    assert read.problems == ()


def test_a_later_version_and_a_tier_from_protobuf_are_read() -> None:
    manifest = hyper_node(node("n"), tier=2.0) | {"apiVersion": "topology.volcano.sh/v1"}
    entry, _ = read_hyper_node(manifest)
    assert entry == HyperNodeSpec(name="rack", tier=2, nodes=["n"])
    assert type(entry.tier) is int


@pytest.mark.parametrize("tier_name", [3, ""])
def test_labels_and_tier_name_that_are_no_text_are_left_out(tier_name: object) -> None:
    manifest = hyper_node(node("n"), tierName=tier_name)
    manifest["metadata"]["labels"] = {"a": "b", "c": None}
    expected = HyperNodeSpec(name="rack", tier=1, labels={"a": "b"}, nodes=["n"])
    assert read_hyper_node(manifest) == (expected, [])


def test_members_of_several_kinds_are_all_read_with_advice() -> None:
    listed = (node("n"), member("HyperNode", exactMatch={"name": "host"}))
    entry, (problem,) = read_hyper_node(hyper_node(*listed))
    assert entry == HyperNodeSpec(name="rack", tier=1, nodes=["n"], children=["host"])
    assert problem.level is Level.ADVISORY
    assert str(problem) == (
        "spec.members: the members are of 2 kinds (nodes, children), and Volcano accepts them "
        "together, but a tree is clearer if each HyperNode has members of one kind. "
        "Make a HyperNode for each "
        "kind. [hypernode-members]"
    )


@pytest.mark.parametrize(
    ("field", "value"), [("name", None), ("name", 7), ("tier", None), ("tier", "1")]
)
def test_a_hyper_node_without_name_or_tier_is_not_given_back(field: str, value: object) -> None:
    manifest = hyper_node(node("n"))
    manifest["metadata" if field == "name" else "spec"][field] = value
    text = {
        "name": "metadata.name: a HyperNode needs a name. Add one. [hypernode-shape]",
        "tier": "spec.tier: a HyperNode needs a tier, a whole number of 0 or more. Write 1 for the "
        "closest domain. [hypernode-shape]",
    }
    assert read_hyper_node(manifest)[0] is None
    assert said(manifest) == text[field]


@pytest.mark.parametrize("tier", [-1, 1.5, True, float("nan"), float("inf")])
def test_a_tier_that_is_no_whole_number_is_a_problem(tier: object) -> None:
    entry, (problem,) = read_hyper_node(hyper_node(node("n"), tier=tier))
    assert entry is None
    assert problem.path == "spec.tier"


@pytest.mark.parametrize("listed", [[], None, {}, "ab"], ids=["empty", "null", "mapping", "text"])
def test_a_hyper_node_without_members_is_a_problem(listed: object) -> None:
    assert said(hyper_node(members=listed)) == (
        "spec.members: a HyperNode needs members, and Volcano's webhook rejects one without. "
        "Add at least one. [hypernode-shape]"
    )


TWO = {"exactMatch": {"name": "n"}, "regexMatch": {"pattern": "n"}}
NO_MEMBER = (
    ": a member has a type, Node or HyperNode, and a selector; Volcano ignores others. Add what is "
    "missing"
)
MISSING_SELECTOR = ": the member has no selector, and Volcano ignores such a member. Add an exact"
NO_SELECTOR = (
    ".selector: the selector has {}, but it needs one of exactMatch with a name, regexMatch with a "
    "pattern and labelMatch. Write exactly one of them"
)
NO_LABELS = ".selector: the labelMatch is empty, and an empty one selects no node. Add matchLabels"
NO_NAME = (
    ".selector: a member of type HyperNode is found by exactMatch, and Volcano ignores {}. Write "
    "an exactMatch for each child"
)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"type": "Node"}, f"{MISSING_SELECTOR}Match, a regexMatch or a labelMatch"),
        ({"type": "Pod", "selector": {}}, NO_MEMBER),
        (None, NO_MEMBER),
        (member("Node"), NO_SELECTOR.format("nothing")),
        (node(7), NO_SELECTOR.format("exactMatch")),
        (member("Node", **TWO), NO_SELECTOR.format("exactMatch and regexMatch")),
        (member("HyperNode", regexMatch={}), NO_SELECTOR.format("regexMatch")),
        (member("HyperNode", regexMatch={"pattern": "^a$"}), NO_NAME.format("regexMatch")),
        (member("HyperNode", labelMatch={}), NO_NAME.format("labelMatch")),
        (member("Node", labelMatch={}), NO_LABELS),
        (member("Node", labelMatch={"matchLabels": 3}), NO_LABELS),
    ],
)
def test_a_member_that_volcano_does_not_take_is_a_problem(broken: object, message: str) -> None:
    manifest = hyper_node(broken, node("n"))
    assert read_hyper_node(manifest)[0] == HyperNodeSpec(name="rack", tier=1, nodes=["n"])
    assert said(manifest) == f"spec.members[0]{message}. [hypernode-shape]"


PATTERN = member("Node", regexMatch={"pattern": "^a$"})
RACK = member("Node", labelMatch={"matchLabels": {"rack": "a"}})
EXPRESSION = member("Node", labelMatch={"matchExpressions": [{"key": "a", "operator": "Exists"}]})


@pytest.mark.parametrize(
    ("listed", "what"),
    [
        ([PATTERN, PATTERN], "a second regexMatch"),
        ([RACK, RACK], "a second labelMatch"),
        ([RACK, EXPRESSION], "matchExpressions"),
    ],
    ids=["patterns", "labels", "expressions"],
)
def test_members_that_a_spec_cannot_hold_are_not_checked(
    listed: list[dict[str, Any]], what: str
) -> None:
    _, (problem,) = read_hyper_node(hyper_node(*listed))
    assert problem.level is Level.UNKNOWN
    assert str(problem) == (
        f"spec.members[1].selector: not checked, because {what} is not read here. "
        "[hypernode-not-read]"
    )


def test_problems_of_several_manifests_say_which_one() -> None:
    read = read_hyper_nodes([hyper_node(node("n")), hyper_node()])
    assert [problem.path for problem in read.problems] == ["manifests[1].spec.members"]
    assert len(read.hyper_nodes) == 2


@given(anything, anything, anything, anything)
def test_no_manifest_makes_the_reader_raise(
    name: object, tier: object, listed: object, selector: object
) -> None:
    loose = hyper_node({"type": "Node", "selector": selector}, {"type": "HyperNode"}, listed)
    loose["metadata"] = {"name": name, "labels": listed}
    keyed = hyper_node(
        *(member("Node", **{key: selector}) for key in ("exactMatch", "regexMatch", "labelMatch")),
        tier=tier,
        tierName=name,
    )
    read_hyper_nodes([name, listed, loose, keyed, hyper_node(members=listed, tier=tier)])
    read_hyper_nodes([{**hyper_node(), "spec": listed, "metadata": tier}])
