import pytest

from kthena_components.core.topology.domains import lowest, read_domains
from tests.cluster.objects import by_label, by_name, by_pattern, hyper_node, tree

NODES = {"n-0-0": {"rack": "r0"}, "n-0-1": {"rack": "r0"}, "n-1-0": {"rack": "r1"}}


def test_nodes_are_found_by_name_pattern_and_labels() -> None:
    found = read_domains(
        [
            hyper_node("a", 1, by_name("n-0-0"), by_name("elsewhere")),
            hyper_node("b", 1, by_pattern("-1-")),
            hyper_node("c", 1, by_label("r0")),
        ],
        NODES,
    )
    assert {domain.name: set(domain.nodes) for domain in found} == {
        "a": {"n-0-0"}, "b": {"n-1-0"}, "c": {"n-0-0", "n-0-1"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}, {"n-1-0"}),
        ({"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["r0"]}]}, {"n-1-0"}),
        ({"matchExpressions": [{"key": "rack", "operator": "Exists"}]}, set(NODES)),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, set(NODES)),
        ({"matchExpressions": [{"key": "rack", "operator": "Like", "values": ["r"]}]}, set()),
        ({"matchLabels": {}}, set()),
        ({}, set()),
        (None, set()),
    ],
)
def test_labels_are_matched_as_kubernetes_does(selector: object, found: set[str]) -> None:
    member = {"type": "Node", "selector": {"labelMatch": selector}}
    (domain,) = read_domains([hyper_node("a", 1, member)], NODES)
    assert domain.nodes == found


def test_a_pattern_that_is_none_finds_nothing() -> None:
    (domain,) = read_domains([hyper_node("a", 1, by_pattern("["))], NODES)
    assert domain.nodes == frozenset()


def test_a_parent_holds_the_nodes_of_its_children() -> None:
    spine = read_domains(tree(2), NODES)[-1]
    assert (spine.name, spine.nodes) == ("spine", frozenset(NODES))


def test_a_cycle_and_a_child_that_is_not_there_end_the_walk() -> None:
    found = read_domains(
        [
            hyper_node("a", 1, by_name("b", "HyperNode"), by_name("n-0-0")),
            hyper_node("b", 2, by_name("a", "HyperNode"), by_name("none", "HyperNode")),
        ],
        NODES,
    )
    assert [domain.nodes for domain in found] == [frozenset({"n-0-0"})] * 2


def test_the_lowest_tier_that_holds_all_nodes_is_reached() -> None:
    domains = read_domains(tree(2), NODES)
    assert str(lowest(domains, {"n-0-0", "n-0-1"})) == "r0 (tier 1)"
    assert str(lowest(domains, {"n-0-0", "n-1-0"})) == "spine (tier 2)"
    assert lowest(domains, {"n-0-0", "elsewhere"}) is None
    assert lowest(domains, set()) is None


@pytest.mark.parametrize("spec", [{}, {"tier": None}, {"tier": "1"}])
def test_a_hyper_node_without_a_tier_is_passed_over(spec: dict[str, object]) -> None:
    assert read_domains([{"metadata": {"name": "a"}, "spec": spec}, {}], NODES) == []
