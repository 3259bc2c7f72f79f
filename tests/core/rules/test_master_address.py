"""Where the pods of an engine look for its first rank."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest

SIZES = "-tp 8 -pp 2 --nnodes 2"
FIRST = "$LWS_LEADER_ADDRESS"


def said(script: str, **spec: Any) -> list[str]:
    """Return what is said of a LeaderWorkerSet of two pods that run one script."""
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.11.1"}
    limits = {"limits": {"nvidia.com/gpu": 8}}
    pod = {"containers": [{**container, "command": ["sh", "-c", script], "resources": limits}]}
    template = {"size": 2, "workerTemplate": {"spec": {**pod, **spec}}}
    metadata = {"name": "llama", "namespace": "serving"}
    body = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    spec = {"replicas": 1, "leaderWorkerTemplate": template}
    found = check_manifest({**body, "metadata": metadata, "spec": spec})
    return [f.seen for f in found if f.rule == "master-address"]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0", "::1", "[::1]"],  # noqa: S104 - read only
)
def test_no_address_of_the_pod_itself_leads_to_another_one(address: str) -> None:
    script = f"vllm serve m {SIZES} --node-rank $LWS_WORKER_INDEX --master-addr '{address}'"
    (seen,) = said(script)
    assert f"with --master-addr {address}: each pod looks for the first rank in itself" in seen


@pytest.mark.parametrize(
    "address", [FIRST, "10.0.0.1", "127-0-0-1.pod", "localhost.lan", "$(hostname)"]
)
def test_other_addresses_may_be_the_first_pod(address: str) -> None:
    script = f"vllm serve m {SIZES} --node-rank $LWS_WORKER_INDEX --master-addr {address}"
    assert said(script) == []


@pytest.mark.parametrize("own", ["", "--master-addr 127.0.0.1", "--master-addr $POD_IP"])
def test_the_branch_of_the_first_pod_may_state_its_own_address(own: str) -> None:
    first = f"vllm serve m {SIZES} --node-rank 0 {own}"
    other = f"vllm serve m {SIZES} --node-rank 1 --headless --master-addr {FIRST}"
    assert said(f"if [ $LWS_WORKER_INDEX = 0 ]; then {first}; else {other}; fi") == []


def test_no_branch_states_one() -> None:
    first, other = (f"vllm serve m {SIZES} --node-rank {rank}" for rank in (0, 1))
    (seen,) = said(f"if [ $LWS_WORKER_INDEX = 0 ]; then {first}; else {other} --headless; fi")
    assert "with no --master-addr, whose default is 127.0.0.1" in seen


@pytest.mark.parametrize("network", [True, False, [], {}, "yes"])
def test_pods_on_the_network_of_their_node_may_share_it(network: object) -> None:
    script = f"vllm serve m {SIZES} --node-rank $LWS_WORKER_INDEX"
    assert bool(said(script, hostNetwork=network)) is (network is False)
