"""`fit`: which groups of stacks and manifests fit into an inventory, and wrong usage."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.main import main
from tests.support.for_each import for_each

ROOT = Path(__file__).parents[2]
INVENTORY = {
    "apiVersion": "kthena-components/v1", "kind": "Inventory", "gpus": 8, "cpu": 64,
    "memory": "1Ti", "racks": [{"nodes": 2, "used": {"gpus": 8}}, {"nodes": 2}],
}  # fmt: skip
POD = {"spec": {"containers": [{"name": "e", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}


def serving(name: str = "chat", replicas: object = 1, workers: int = 1) -> dict[str, Any]:
    role = {"name": "decode", "replicas": 1, "workerReplicas": workers, "entryTemplate": POD,
            "workerTemplate": POD}  # fmt: skip
    tier = {"groupPolicy": {"mode": "hard", "highestTierAllowed": 1}}
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing",
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"replicas": replicas, "template": {"roles": [role], "networkTopology": tier}},
    }  # fmt: skip


def written(folder: Path, name: str, *bodies: object) -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(bodies))
    return str(path)


def fit(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(["fit", *arguments])
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr()
    return status, said.out, said.err


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fit(capsys, *arguments, "-o", "json")[1])
    return found


def test_a_program_that_is_not_rendered_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    project = tmp_path / "project"
    project.mkdir()
    settings = project / "Pulumi.yaml"
    settings.write_text("name: chat\nruntime: python\n")
    program = project / "__main__.py"
    program.write_text("print(1)\n")
    for path in (project, program):
        status, out, err = fit(capsys, str(path), "--inventory", cluster)
        assert (status, out) == (2, "")
        assert err.startswith(f"kthena-components fit: {path}: is a program, whose manifests")
    for name in ("index.mts", "App.cs", "App.java", "App.tsx"):
        written(tmp_path, name, [])
        assert fit(capsys, str(tmp_path / name), "--inventory", cluster)[0] == 2
    other = written(tmp_path, "other.yaml", serving())
    status, out, err = fit(capsys, str(project), other, "--inventory", cluster)
    assert (status, out) == (2, "")
    assert err.startswith(f"kthena-components fit: {project}: is a program")
    written(project, "rendered.yaml", serving())
    assert fit(capsys, str(project), "--inventory", cluster)[0] == 0


def test_a_stack_of_another_program_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    (tmp_path / "Pulumi.yaml").write_text("name: chat\nruntime: python\n")
    (tmp_path / "Pulumi.prod.yaml").write_text("config: {chat:model: a/b}\n")
    monkeypatch.chdir(tmp_path)
    status, out, err = fit(capsys, "prod", "--inventory", cluster)
    assert (status, out) == (2, "")
    assert "Pulumi.prod.yaml: lists no servings, so a program makes its manifests" in err


def test_a_serving_that_fits_has_a_rack_and_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    status, out, err = fit(capsys, written(tmp_path, "s.yaml", serving()), "--inventory", cluster)
    assert (status, err) == (0, "")
    head, _, row, *rest = out.splitlines()
    assert head.split() == ["verdict", "group", "pods", "GPUs", "HyperNode", "nodes"]
    assert row.split() == [
        "fits", "serving/chat-0", "2", "16", "rack-2", "(tier", "1)", "rack-2-node-1,",
        "rack-2-node-2",
    ]  # fmt: skip
    assert "1 group: 1 fits." in rest
    assert any(line.startswith("rack-1") and line.rstrip().endswith("16/16") for line in rest)


def test_one_that_does_not_fit_waits_or_never_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    asked = written(tmp_path, "s.yaml", serving("two", 2), serving("wide", workers=2))
    status, out, _ = fit(capsys, asked, "--inventory", cluster)
    assert status == 1
    assert [line.split()[:2] for line in out.splitlines()[2:5]] == [
        ["fits", "serving/two-0"], ["waits", "serving/two-1"], ["never", "serving/wide-0"],
    ]  # fmt: skip
    assert "3 groups: 1 fits, 1 waits, 1 never fits." in out


def test_what_is_not_known_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    asked = written(tmp_path, "s.yaml", serving("late", "${REPLICAS}"))
    status, out, _ = fit(capsys, asked, "--inventory", cluster)
    assert status == 0
    assert "serving/late: not checked, because" in out
    assert "1 group: 1 is not checked." in out


def test_a_refused_stack_names_its_file_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    (tmp_path / "Pulumi.yaml").write_text("name: chat\nruntime: yaml\n")
    (tmp_path / "Pulumi.prod.yaml").write_text("config: {chat:servings: [], chat:gpu_budget: x}\n")
    monkeypatch.chdir(tmp_path)
    status, _, err = fit(capsys, "prod", "--inventory", cluster)
    assert status == 2
    assert "fit: Pulumi.prod.yaml: chat:gpu_budget: is 'x'" in err


def test_a_stack_brings_its_hyper_nodes_and_queues(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    nodes = {**INVENTORY, "racks": 0, "nodes": [
        {"names": [f"gpu-rack-{r}-node-{n}" for r in (1, 2) for n in range(4)]}]}  # fmt: skip
    found = data(capsys, "prod", "--inventory", written(tmp_path, "c.yaml", nodes))
    assert [group["owner"] for group in found["groups"]]
    assert {rack["name"] for rack in found["racks"]} == {"rack-1", "rack-2"}


def running(gpus: int = 8) -> dict[str, Any]:
    requests = {"nvidia.com/gpu": gpus}
    return {
        "group": {"namespace": "serving", "name": "chat-0", "owner": "ModelServing serving/chat",
                  "minimum": 2, "topology": {"mode": "hard", "highest_tier_allowed": 1},
                  "subgroups": [{"size": 2, "minimum": 1}],
                  "pods": [{"name": "decode-0", "count": 2, "requests": requests}]},
        "nodes": ["rack-1-node-1", "rack-1-node-2"],
    }  # fmt: skip


def test_what_runs_as_it_is_asked_for_stays_and_a_change_frees_its_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = written(tmp_path, "s.yaml", serving())
    racks = [{"nodes": 2, "used": {"gpus": 8}}]
    same = {**INVENTORY, "racks": racks, "running": [running()]}
    found = data(capsys, asked, "--inventory", written(tmp_path, "same.yaml", same))
    (group,) = found["groups"]
    assert (group["verdict"], group["note"]) == ("fits", "runs already and stays")
    assert group["nodes"] == ["rack-1-node-1", "rack-1-node-2"]
    assert found["racks"] == [{"name": "rack-1", "gpus": 16, "left": 0}]
    smaller = [{"nodes": 2, "used": {"gpus": 4}}]
    other = {**INVENTORY, "racks": smaller, "running": [running(4)]}
    (group,) = data(capsys, asked, "--inventory", written(tmp_path, "o.yaml", other))["groups"]
    assert (group["verdict"], group["note"]) == ("fits", "")


NO_FILE = "cannot be read: No such file or directory."
NEITHER = (
    "write `kind: Inventory` and `apiVersion: kthena-components/v1`, or name the output of "
    "`kubectl get nodes -o yaml`."
)
WRONG = [
    (["s.yaml", "--inventory", "none.yaml"], f"none.yaml: {NO_FILE}"),
    (["gone.yaml", "--inventory", "c.yaml"], f"gone.yaml: {NO_FILE}"),
    (
        ["s.yaml", "--inventory", "bad.yaml"],
        "bad.yaml: gpu: there is no field 'gpu' here: remove it, because gpus is stated, too.",
    ),
    (["s.yaml", "--inventory", "s.yaml"], f"s.yaml: contains no node and no inventory: {NEITHER}"),
]


@for_each(("arguments", "told"), WRONG, ids=str)
def test_what_cannot_be_read_is_told_in_one_sentence(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "s.yaml", serving())
    written(tmp_path, "c.yaml", INVENTORY)
    written(tmp_path, "bad.yaml", {**INVENTORY, "gpu": 8})
    assert fit(capsys, *arguments) == (2, "", f"kthena-components fit: {told}\n")


def test_a_stack_that_does_not_exist_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    cluster = written(tmp_path, "c.yaml", INVENTORY)
    status, out, err = fit(capsys, "prode", "--inventory", cluster)
    assert (status, out) == (2, "")
    assert "there is no stack 'prode': write 'prod'" in err


def test_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster, page = written(tmp_path, "c.yaml", INVENTORY), tmp_path / "page.html"
    asked = written(tmp_path, "s.yaml", serving())
    assert fit(capsys, asked, "--inventory", cluster, "--html", str(page))[0] == 0
    assert "serving/chat-0" in page.read_text()
    nowhere = str(tmp_path / "none" / "page.html")
    status, out, err = fit(capsys, asked, "--inventory", cluster, "--html", nowhere)
    assert (status, out) == (2, "")
    assert "No such file or directory" in err


def test_a_loss_tells_which_groups_come_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "cluster.yaml", {**INVENTORY, "racks": 1, "nodes_per_rack": 3})
    asked = (written(tmp_path, "s.yaml", serving()), "--inventory", cluster)
    status, out, _ = fit(capsys, *asked, "--lose", "node=rack-1-node-1")
    assert status == 0
    assert out.splitlines()[-2:] == [
        "The loss (rack-1-node-1) hits 1 group: it can be placed again.",
        "  serving/chat-0 loses 1 pod, and has new ones on rack-1-node-3.",
    ]
    out = fit(capsys, *asked, "--lose", "rack=rack-1")[1]
    assert out.splitlines()[-2:] == [
        "The loss (rack-1, 3 nodes) hits 1 group: it cannot be placed again.",
        "  serving/chat-0 loses 2 pods and waits: no node that they may use has room.",
    ]
    out = fit(capsys, *asked, "--lose", "1")[1]
    assert (
        "The worst loss of a single node (rack-1-node-1) hits 1 group: it can be placed again."
        in out
    )


def test_a_loss_that_hits_nothing_says_of_whom(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    racks = [{"nodes": 4, "used": {"gpus": 8}}]
    cluster = written(tmp_path, "cluster.yaml", {**INVENTORY, "racks": racks})
    out = fit(
        capsys, written(tmp_path, "s.yaml", serving()), "--inventory", cluster, "--lose", "1"
    )[1]
    assert "No pod of these groups or of a PodGroup is on a node, so no loss strands one." in out


def test_a_loss_of_several_groups_has_their_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = written(tmp_path, "s.yaml", serving(replicas=2))

    def check(others: int, says: str) -> None:
        racks = [{"nodes": 4}, {"nodes": others}]
        cluster = written(tmp_path, "cluster.yaml", {**INVENTORY, "racks": racks})
        out = fit(capsys, asked, "--inventory", cluster, "--lose", "rack=rack-1")[1]
        assert f"The loss (rack-1, 4 nodes) hits 2 groups: {says}" in out.splitlines(), out

    for_each(
        ("others", "says"),
        [
            (1, "none can be placed again."),
            (2, "1 of 2 groups cannot be placed again."),
            (4, "all can be placed again."),
        ],
    )(check)()


def test_a_loss_of_what_is_not_there_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    asked = (written(tmp_path, "s.yaml", serving()), "--inventory", cluster)

    def check(lose: str, says: str) -> None:
        status, _, err = fit(capsys, *asked, "--lose", lose)
        assert (status, err) == (2, f"kthena-components fit: --lose: {says}\n")

    for_each(
        ("lose", "says"),
        [
            ("rack=rak-1", "there is no HyperNode 'rak-1': write rack=rack-1"),
            ("node=rack-1-node-9", "there is no node 'rack-1-node-9': write node=rack-1-node-2"),
            ("2", "'2': write node=NAME, rack=HYPERNODE, or 1 for the worst single node"),
        ],
    )(check)()


def test_growth_counts_whole_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = written(tmp_path, "cluster.yaml", {**INVENTORY, "racks": 3, "nodes_per_rack": 3})
    asked = (written(tmp_path, "s.yaml", serving()), "--inventory", cluster)
    out = fit(capsys, *asked, "--grow")[1]
    assert (
        out.splitlines()[-1]
        == "ModelServing serving/chat: groups that fit: 1 of 1, with room for 2 more."
    )
    found = data(capsys, *asked, "--grow", "--lose", "node=rack-1-node-1")
    assert found["grow"] == [
        {"owner": "ModelServing serving/chat", "groups": 1, "fit": 1, "more": 2}
    ]
    assert found["lose"]["nodes"] == ["rack-1-node-1"]
    assert [(hit["group"], hit["lostPods"]) for hit in found["lose"]["groups"]] == [
        ("serving/chat-0", 1)
    ]


@pytest.mark.parametrize(("gpus", "more", "told"), [
    (None, 2, "2x needs 1 more: they fit."),
    (None, 2, "4x needs 3 more: they do not fit."),
    (32, 1, "2x needs 1 more: they fit."),
    (24, 0, "2x needs 1 more: they do not fit."),
    (16, 0, "1x needs 0 more: they fit."),
])  # fmt: skip
def test_growth_to_a_multiple_within_the_quota_that_the_groups_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpus: int | None, more: int, told: str
) -> None:
    """The quota says nothing of what is asked about, because that does not run yet."""
    factor = told.partition(" ")[0]
    hard = {"requests.nvidia.com/gpu": gpus}
    quotas = [] if gpus is None else [{"namespace": "serving", "name": "q", "hard": hard}]
    fields = {**INVENTORY, "racks": 3, "nodes_per_rack": 3, "quotas": quotas}
    asked = (written(tmp_path, "s.yaml", serving()), "--inventory",
             written(tmp_path, "cluster.yaml", fields))  # fmt: skip
    assert fit(capsys, *asked, "--grow", factor)[1].splitlines()[-1] == (
        f"ModelServing serving/chat: groups that fit: 1 of 1, with room for {more} more. {told}"
    )
    (row,) = data(capsys, *asked, "--grow", factor)["grow"]
    assert (row["more"], row["fits"]) == (more, "do not" not in told)


@pytest.mark.parametrize("word", ["s.yaml", "0x", "x", "-1x", "2", "1.5x"])
def test_growth_is_asked_by_a_factor(capsys: pytest.CaptureFixture[str], word: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["fit", "s.yaml", f"--grow={word}"])
    told = capsys.readouterr().err
    assert left.value.code == 2
    assert f"'{word}' is not a factor such as 2x" in told


def test_pods_without_a_gang_that_fit_in_part_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five pods of eight GPUs on two free nodes and two that others use."""
    labels = {"app": "chat"}
    body: dict[str, Any] = {
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"replicas": 3, "serviceName": "chat", "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, **POD}},
    }  # fmt: skip
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    status, out, _ = fit(capsys, written(tmp_path, "set.yaml", body), "--inventory", cluster)
    assert status == 1
    assert "in part" in out
    told = "serving/chat: 2 of 3 pods are placed and hold 16 GPUs; 1 pod is not. No gang keeps"
    assert told in out
    assert "1 group: 1 fits in part." in out
    body["spec"]["replicas"] = 5
    path = written(tmp_path, "set.yaml", body)
    (found,) = data(capsys, path, "--inventory", cluster)["groups"]
    assert found["verdict"] == "in part"
    assert "3 pods are not, also on a cluster with nothing else on it" in found["note"]


LABELS = (
    ("nvidia.com/gpu.product", "NVIDIA-H200"),
    ("cloud.google.com/gke-accelerator", "nvidia-h200-141gb"),
)


@pytest.mark.parametrize(
    ("stated", "by_affinity", "status"),
    [
        pytest.param({"product": "H200"}, False, 0, id="the-same-product"),
        pytest.param({"product": "H200"}, True, 0, id="the-same-product-for-an-affinity"),
        pytest.param({}, False, 0, id="nothing-is-stated"),
        pytest.param({}, True, 0, id="nothing-is-stated-for-an-affinity"),
        pytest.param({"product": "H100"}, False, 1, id="another-product"),
        pytest.param({"labels": {"nvidia.com/gpu.memory": "1"}}, False, 1, id="another-label"),
        pytest.param({"taken": "2026-01-01T00:00:00Z"}, False, 1, id="read-from-a-cluster"),
    ],
)
def test_a_gpu_that_no_node_states_is_not_compared(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    stated: dict[str, Any],
    by_affinity: bool,
    status: int,
) -> None:
    """A cluster's own nodes without the label are compared, as its scheduler does."""
    cluster = written(tmp_path, "cluster.yaml", {**INVENTORY, **stated})
    for key, value in LABELS:
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        asks: dict[str, Any] = {"nodeSelector": {key: value}}
        if by_affinity:
            asks = {"affinity": {"nodeAffinity": required}}
        body = serving()
        role = body["spec"]["template"]["roles"][0]
        role["entryTemplate"] = role["workerTemplate"] = {"spec": {**POD["spec"], **asks}}
        found, out, _ = fit(capsys, written(tmp_path, "chat.yaml", body), "--inventory", cluster)
        assert found == status, (key, out)
        assert ("write the `product` of the nodes" in out) == (not stated), out


def test_an_equal_reason_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = written(tmp_path, "cluster.yaml", INVENTORY)
    asked = written(tmp_path, "s.yaml", serving("wide", 5, workers=2), serving("big", workers=2))
    out = fit(capsys, asked, "--inventory", cluster)[1]
    told = [line for line in out.splitlines() if line.startswith("6 groups (")]
    assert len(told) == 1, out
    assert told[0].startswith(
        "6 groups (serving/wide-0, serving/wide-1, serving/wide-2 and 3 more): "
    )
    late = written(tmp_path, "late.yaml", serving("a", "${N}"), serving("b", "${N}"))
    out = fit(capsys, late, "--inventory", cluster)[1]
    assert "2 groups (serving/a, serving/b): not checked, because" in out


TWICE = "so it would be counted twice, and one cluster has it once"
PER_FOLDER = "ask about one folder, file or values file at a time, or rename one of the two"


def test_an_object_of_two_clusters_is_not_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dev").mkdir()
    Path("prod").mkdir()
    cluster = (
        "--inventory",
        written(tmp_path, "cluster.yaml", {**INVENTORY, "racks": 9, "nodes_per_rack": 2}),
    )
    written(tmp_path, "dev/s.yaml", serving(), serving("b"), serving("only-dev"))
    written(tmp_path, "prod/chat.yaml", serving(replicas=2), serving("b"))
    both = f"dev/s.yaml and prod/chat.yaml both have ModelServing serving/chat, {TWICE}"
    assert fit(capsys, "dev", "prod", *cluster) == (
        2, "",
        f"kthena-components fit: {both}; 1 more is alike: {PER_FOLDER}.\n",
    )  # fmt: skip
    assert fit(capsys, "prod", *cluster)[0] == 0
    written(tmp_path, "two.yaml", serving(), serving())
    told = f"two.yaml has ModelServing serving/chat twice, {TWICE}: remove or rename one of the two"
    assert fit(capsys, "two.yaml", *cluster) == (2, "", f"kthena-components fit: {told}.\n")
    other = serving()
    other["metadata"]["namespace"] = "team"
    written(tmp_path, "apart.yaml", serving(), other, serving("${NAME}"), serving("${NAME}"))
    assert fit(capsys, "apart.yaml", *cluster)[0] == 0


def test_a_stack_that_is_named_twice_counts_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    nodes = {**INVENTORY, "racks": 0, "nodes": [
        {"names": [f"gpu-rack-{r}-node-{n}" for r in (1, 2) for n in range(4)]}]}  # fmt: skip
    cluster = ("--inventory", written(tmp_path, "c.yaml", nodes))
    assert data(capsys, "prod", "prod", *cluster) == data(capsys, "prod", *cluster)
