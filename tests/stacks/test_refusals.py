"""What a stack file must not say, each with the whole text that its writer gets."""

from typing import Any, Final

from kthena_components.systems import EMITTERS
from tests.stacks.handed import config_of, handed, refusal
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, template

POD: Final = template()
EMPTY: Final = (
    "servings: is empty, and so are topology, queues and secrets; an update would delete all "
    "that this stack has deployed. Add servings, or run 'pulumi destroy'. [stack-empty]"
)


def serving(name: str, role: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "roles": [{"name": role, "entry_template": POD}], **more}


SLIPS: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "a field of a role": (
        {"servings[0].roles[0].replica": 3},
        [("servings[0].roles[0].replica: there is no field 'replica' here. Remove it, "
         "because replicas is stated, too. [unknown-field]")],
    ),
    "a field of the stack": (
        {"servngs": [serving("a", "b")]},
        [("servngs: there is no field 'servngs' here. Remove it, because servings is stated, too. "
         "[unknown-field]")],
    ),
    "a field that resembles none": (
        {"zzz": "1"},
        [("zzz: there is no field 'zzz' here. Remove it; known: allow_plain_secrets, context, "
         "gpu, gpu_budget, kubeconfig, output, queues, render_directory, secrets, servings, "
         "topology. [unknown-field]")],
    ),
    "an output that there is not": (
        {"output": "file"},
        [("output: is 'file', but must be one of 'render', 'cluster'. Choose one of them. "
         "[known-value]")],
    ),
    "text for a list": (
        {"servings": "llama"},
        ["servings: is 'llama', but must be a list. Write a list. [type]"],
    ),
    "text for a serving": (
        {"servings[0]": "llama"},
        ["servings[0]: is 'llama', but must be a map. Write a map. [type]"],
    ),
    "several topologies": (
        {"topology": [{"hyper_nodes": []}]},
        [("topology: is a list, but must be a map of fields. Write a map of fields; known: "
          "hyper_nodes, inventory. [type]")],
    ),
    "no servings": ({"servings": REMOVED}, [EMPTY]),
    "an empty list of servings": ({"servings": []}, [EMPTY]),
    "servings without a value": ({"servings": ""}, [EMPTY]),
    "no backend of that name": (
        {"servings[0].backend": "kthna"},
        [("servings[0].backend: there is no backend 'kthna'. Write 'kthena'; known: "
         f"{', '.join(sorted(EMITTERS))}. [known-backend]")],
    ),
    "more ranks than GPUs": (
        {"servings[0].roles[0].engine.parallelism.tensor": 2},
        [("servings[0].roles[0].engine.parallelism: engine 'serve' starts tensor 2 × pipeline 2 = "
         "4 ranks, but its 2 pods × 1 GPU hold 2. Set pipeline to 1, or set tensor to 1, or give "
         "the engine 4 pods (worker_replicas: 3), or give each pod 2 GPUs. "
         "[world-size-equals-gpus]")],
    ),
    "a cluster for rendering": (
        {"kubeconfig": "~/.kube/prod", "context": "prod"},
        [f"{field}: is given, but output is render, which writes files and connects to no cluster. "
         "Remove it, or write output: cluster. [output-field]"
         for field in ("kubeconfig", "context")],
    ),
    "a folder for a cluster": (
        {"output": "cluster", "render_directory": "out", "allow_plain_secrets": ["hf-token"]},
        [f"{field}: is given, but output is cluster, which applies to a cluster and writes no "
         "files. Remove it, or write output: render. [output-field]"
         for field in ("render_directory", "allow_plain_secrets")],
    ),
    "the same serving twice": (
        {"servings[1]": serving("llama-8b", "other")},
        [("servings[1].name: 'default/llama-8b' is already the name of servings[0]. Remove or "
         "rename one of the two. [name-once]")],
    ),
    "a serving whose Service another one makes": (
        {"servings": [serving("a", "b", scheduler_name="x"),
                      serving("a-0-b-0", "c", backend="kthena", expose={})]},
        [("servings[1]: would create the Service default/a-0-b-0, which servings[0] also creates. "
         "Rename one of the two, or give it another namespace. [object-twice]")],
    ),
    "the same queue twice": (
        {"queues": [{"name": "research"}, {"name": "research"}]},
        [("queues[1].name: 'research' is already the name of queues[0]. Remove or rename one of "
         "the two. [name-once]")],
    ),
    "queues above themselves": (
        {"queues": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
        [("queues[0].parent: the parents form a cycle, a -> b -> a, and each queue needs its "
         "parent first. Remove the parent of one of them. [queue-cycle]")],
    ),
    "a queue that may take more than the one above it": (
        {"queues": [{"name": "a", "capability": {"cpu": 2}},
                    {"name": "b", "parent": "a", "capability": {"cpu": 4}}]},
        [("queues[1].capability.cpu: is 4, but the capability of 'a', the nearest queue above that "
         "names it, has 2, and Volcano's webhook rejects more. Write at most 2. "
         "[queue-within-parent]")],
    ),
    "a character that stands for an Output": (
        {"queues": [{"name": "a", "parent": "\ue0001\ue001"}]},
        [("queues[0].parent: is '<Output>', but must be text without the characters U+E000 and "
          "U+E001, which mark Outputs here. Remove them. [type]")],
    ),
    "a child that is not a HyperNode": (
        {"topology": {"hyper_nodes": [{"name": "spine", "tier": 2, "children": ["rack"]}]}},
        [("topology.hyper_nodes[0].children[0]: no entry is named 'rack', but Volcano ignores a "
         "member that does not exist. Add a HyperNode 'rack', or list it in nodes if it is a node. "
         "[hypernode-unknown-child]")],
    ),
}  # fmt: skip


@for_each("slip", SLIPS)
def test_a_slip_in_a_stack_file_is_refused_with_its_path_and_a_remedy(slip: str) -> None:
    changes, expected = SLIPS[slip]
    assert refusal(handed("dev", changes)) == expected


def test_all_slips_of_a_stack_are_told_at_once() -> None:
    slips = {
        "output": "cluster",
        "render_directory": "out",
        "queues": [{"name": "a", "wieght": 2}],
        "servings[0].roles[0].replica": 3,
        "servings[1]": serving("llama-8b", "Upper"),
    }
    assert [line.partition(": ")[0] for line in refusal(handed("dev", slips))] == [
        "queues[0].wieght",
        "render_directory",
        "servings[1].name",
        "servings[0].roles[0].replica",
        "servings[1].roles[0].name",
    ]


def test_the_same_name_in_two_namespaces_is_two_servings() -> None:
    assert not refusal(handed("dev", {"servings[1]": serving("llama-8b", "b", namespace="team")}))


def test_a_value_that_is_secret_cannot_become_part_of_a_pod() -> None:
    config = config_of("dev", {"servings": [serving("a", "b")]}, frozenset({"servings"}))
    assert refusal(config) == [
        (
            "servings: contains a secret value, which would be plain text in the manifests. "
            "Give the value its own config key, name that key in secrets, and use that "
            "Secret by secretKeyRef. [secret-in-config]"
        )
    ]


def test_a_kubeconfig_in_plain_text_is_refused_without_being_shown() -> None:
    config = handed("dev", {"output": "cluster", "kubeconfig": "users:\n- token: abc"})
    assert refusal(config) == [
        (
            "kubeconfig: contains a whole kubeconfig in plain text, with the credentials for the "
            "cluster. Run 'pulumi config set --secret kubeconfig --stack dev < FILE', or write "
            "a path. [secret-in-plain-text]"
        )
    ]


def test_the_servings_stay_within_the_budget() -> None:
    assert refusal(handed("dev", {"gpu_budget": 2})) == []
    assert refusal(handed("dev", {"gpu_budget": 1})) == [
        (
            "gpu_budget: is 1, but the servings of this stack request 2 GPUs. Request 1 fewer, or "
            "write 2. [gpu-budget]"
        )
    ]


BIG: Final = {
    "name": "big",
    "backend": "native",
    "roles": [
        {
            "name": "serve",
            "engine": {
                "kind": "vllm",
                "image": "vllm/vllm-openai:v0.33.0",
                "model": "meta-llama/Llama-3.3-70B-Instruct",
                "launcher": "native",
            },
        }
    ],
}


def test_the_gpu_of_a_stack_has_room_for_the_weights() -> None:
    fits, small = {"servings": [BIG], "gpu": "b200"}, {"servings": [BIG], "gpu": "h100"}
    assert refusal(handed("dev", {"servings": [BIG]})) == []
    assert refusal(handed("dev", fits)) == []
    (told,) = refusal(handed("dev", small))
    assert "puts 131.4 GiB of weights on each GPU" in told
    assert "0.92 × 79.7 GiB of NVIDIA H100" in told


def test_an_unknown_gpu_of_a_stack_names_near_ones() -> None:
    assert refusal(handed("dev", {"gpu": "h10"})) == [
        (
            "gpu: cannot be used: 'h10' is not in the table of GPUs; near names: h100, h20, a10. "
            "Write a name such as h200, or remove it. [gpu-known]"
        )
    ]
