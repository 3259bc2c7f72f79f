"""Bad input of `inventory` and `fit`: one sentence for each mistake, status 2, nothing printed.

A cluster is read from a server that lists what it is given.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.main import main
from tests.cluster.objects import by_name, hyper_node, node
from tests.cluster.test_fetch_inventory import Changing, Server
from tests.support.for_each import for_each

HEAD = {"apiVersion": "kthena-components/v1", "kind": "Inventory", "gpus": 8}
NODES = [{"name": "a"}, {"name": "b"}]
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "serving"},
    "spec": {"containers": [{"name": "e", "resources": {"limits": {"nvidia.com/gpu": 8}}}]},
}  # fmt: skip
CYCLE = [
    hyper_node("r", 1, by_name("a")),
    hyper_node("s", 2, by_name("r", "HyperNode"), by_name("t", "HyperNode")),
    hyper_node("t", 3, by_name("s", "HyperNode")),
]
TWICE = [hyper_node("r", 1, by_name("a")), hyper_node("s", 1, by_name("a"), by_name("b"))]
IN_CYCLE = "the children form a cycle, t -> s -> t"
IN_TWO = "node 'a' is in the HyperNodes 'r' and 's', both of tier 1"
BY_HAND: list[tuple[dict[str, Any], str]] = [
    ({"nodes": NODES, "colour": "red"}, "colour: there is no field 'colour' here"),
    ({"nodes": [{"name": "a", "memory": "-1Gi"}]}, "nodes[0].memory: is '-1Gi', but must be"),
    ({"nodes": [{"name": "a", "used": {"gpus": -1}}]}, "nodes[0].used.gpus: is -1, but must be"),
    ({"nodes": NODES, "apiVersion": "kthena-components/v9"},
     "apiVersion is 'kthena-components/v9', but this version reads kthena-components/v1"),
    ({"racks": [{"name": "r", "nodes": NODES}, {"name": "s", "nodes": NODES[:1]}]},
     "racks[1].nodes[0]: node 'a' is already in racks[0].nodes[0]"),
    ({"nodes": NODES, "hyper_nodes": [{"name": "r", "tier": 1, "nodes": ["a"]},
                                      {"name": "s", "tier": 1, "nodes": ["a", "b"]}]}, IN_TWO),
    ({"nodes": NODES, "hyper_nodes": [{"name": "r", "tier": 1, "nodes": ["a"]},
                                      {"name": "s", "tier": 2, "children": ["t", "r"]},
                                      {"name": "t", "tier": 3, "children": ["s"]}]},
     "the children form a cycle, t -> s -> t"),
    ({"nodes": []}, "contains no node: state racks and nodes_per_rack, or nodes"),
]  # fmt: skip


class Commands:
    """Runs a command on a file or on a server, and returns the one sentence that it ends with."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.folder, self.capsys, self.patch = folder, capsys, patch
        self.pod = str(folder / "pod.yaml")
        Path(self.pod).write_text(yaml.safe_dump(POD))

    def refused(self, *arguments: str) -> str:
        with pytest.raises(SystemExit) as left:
            main([*arguments])
        told = self.capsys.readouterr()
        assert (left.value.code, told.out, told.err.count("\n")) == (2, "", 1), told.err
        return told.err

    def file(self, *bodies: Any) -> str:
        path = self.folder / "cluster.yaml"
        path.write_text(yaml.safe_dump_all(bodies))
        return str(path)

    def serve(self, server: Server) -> None:
        opened = "kthena_components.cluster.connect.open_cluster"
        self.patch.setattr(opened, lambda *_: (server, "v1.34.4"))

    def live(self, command: str, server: Server) -> str:
        self.serve(server)
        return self.refused(command, *([self.pod] if command == "fit" else []))


@pytest.fixture
def commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Commands:
    return Commands(tmp_path, capsys, monkeypatch)


@for_each(("fields", "told"), BY_HAND, ids=[told for _, told in BY_HAND])
def test_a_file_by_hand(commands: Commands, fields: dict[str, Any], told: str) -> None:
    cluster = commands.file({**HEAD, **fields})
    assert told in commands.refused("fit", commands.pod, "--inventory", cluster)


RACKS = [(CYCLE, IN_CYCLE), (TWICE, IN_TWO)]


@for_each(("racks", "told"), RACKS, ids=["cycle", "two racks"])
def test_racks_of_a_dump(commands: Commands, racks: list[dict[str, Any]], told: str) -> None:
    nodes = [{"apiVersion": "v1", "kind": "Node", **node(name)} for name in "ab"]
    cluster = commands.file(*nodes, *racks)
    assert told in commands.refused("fit", commands.pod, "--inventory", cluster)


@for_each(("racks", "told"), RACKS, ids=["cycle", "two racks"])
@pytest.mark.parametrize("command", ["inventory", "fit"])
def test_racks_of_a_cluster(
    commands: Commands, command: str, racks: list[dict[str, Any]], told: str
) -> None:
    server = Server({"Node": [node("a"), node("b")], "Pod": [], "HyperNode": racks})
    assert told in commands.live(command, server)


@pytest.mark.parametrize("command", ["inventory", "fit"])
def test_a_cluster_that_cannot_be_read(commands: Commands, command: str) -> None:
    forbidden = Server({"Node": [node("a")]}, refused=("Pod",))
    assert "you may not list pods in the whole cluster" in commands.live(command, forbidden)
    told = commands.live(command, Changing(100))
    assert "nodes came or went each of the 3 times that the cluster was read" in told


def test_what_inventory_writes_is_read_by_fit(commands: Commands) -> None:
    commands.serve(Server({"Node": [node("a", gpus=8)], "Pod": []}))
    assert main(["inventory"]) == 0
    written = commands.folder / "written.yaml"
    written.write_text(commands.capsys.readouterr().out)
    assert main(["fit", commands.pod, "--inventory", str(written)]) == 0
