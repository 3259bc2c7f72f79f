"""Placeholders of files: what is one, what is not, and what of a line stays known."""

from typing import Any

import pytest
import yaml

from kthena_components.core.engines import read_command
from kthena_components.core.engines.dialects import takes_number
from kthena_components.core.values.blanks import is_blank, mark_blanks, mark_empty, may_have_blanks
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.core.values.unknown import BLANK_WORD, Blank, Unknown, is_unresolved
from tests.support.for_each import for_each
from tests.toughness.guard import no_hang


@for_each(
    "text",
    [
        "${REPLICAS}",
        "${GPUS:-8}",
        "${name}-chat",
        "$MODEL",
        "{{ .Values.model }}",
        "registry/{{ image }}:v1",
        "<your token>",
        "<>",
        "gs://<bucket>/models",
        "PLACEHOLDER_GPUS",
        "MODEL_PLACEHOLDER",
        "REPLACE_ME",
        "replace-me",
        "changeme",
        "REPLACE_WITH_IMAGE",
        "gcr.io/YOUR_PROJECT/vllm",
        "TODO",
        "SET_AT_RUNTIME",
        "SET-ME",
        "set_me",
        "REPLACE_MODEL_SERVER_IMAGE",
        "replaced-by-kustomize",
        "FILLED_BY_VALIDATOR",
        "FILLED BY THE OPERATOR",
        "__LWS_NAME__",
        "vllm/vllm-openai:__TAG__",
        "@NAME@",
        "chat-@project.name@",
        "%NAME%",
        "#{name}#",
        "[[name]]",
        "chat-[[ name ]]",
        "((name))",
    ],
)
def test_what_somebody_fills_in_is_a_placeholder(text: str) -> None:
    assert is_blank(text)
    assert may_have_blanks(f"  field: {text}\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llama",
        "$(POD_IP)",
        "user@host",
        "%H%M%S",
        "%E4%BD%A0",
        "[[:alpha:]]",
        "[[1, 2]]",
        "$$",
        "US$5",
        "^chat$",
        "nvidia.com/gpu",
        "NVIDIA-H100-80GB-HBM3",
        "a<b",
        ">=1.2 <2",
        "placeholder",
        "echo ${X}\n",
        "{{",
        "INFO",
        "SETATTR",
        "REPLACE",
        "replaced-by-",
        "yourself",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert not is_blank(text)


def test_a_word_in_capitals_is_one_where_a_number_belongs() -> None:
    body = {
        "spec": {
            "replicas": "COUNT",
            "ports": [{"containerPort": "PORT", "protocol": "TCP", "name": "PORT"}],
            "resources": {"limits": {"nvidia.com/gpu": "GPUS", "cpu": "4"}},
        }
    }
    spec = mark_blanks(body)["spec"]
    assert isinstance(spec["replicas"], Blank)
    assert [type(value) for value in spec["ports"][0].values()] == [Blank, str, str]
    assert [type(value) for value in spec["resources"]["limits"].values()] == [Blank, str]


def test_a_word_in_capitals_is_one_where_capitals_are_not_allowed() -> None:
    text = "metadata:\n  name: MODEL_NAME\nspec:\n  image: VLLM_IMAGE\n"
    body = {
        "metadata": {"name": "MODEL_NAME", "namespace": "TEAM", "labels": {"name": "TEAM"}},
        "spec": {"image": "VLLM_IMAGE", "env": [{"name": "HF_TOKEN"}]},
    }
    marked = mark_blanks(body)
    assert all(may_have_blanks(line) for line in (text[:28], text[28:]))
    assert [type(value) for value in marked["metadata"].values()] == [Blank, Blank, dict]
    assert marked["metadata"]["labels"] == {"name": "TEAM"}
    assert type(marked["metadata"]["labels"]["name"]) is str
    assert isinstance(marked["spec"]["image"], Blank)
    assert type(marked["spec"]["env"][0]["name"]) is str


def test_a_container_may_have_the_placeholder_of_its_object() -> None:
    containers = [{"name": "APP"}, {"name": "APP_2", "env": [{"name": "APP"}]}]
    body = {"metadata": {"name": "APP"}, "spec": {"template": {"containers": containers}}}
    named, other = mark_blanks(body)["spec"]["template"]["containers"]
    assert type(named["name"]) is Blank
    assert type(other["name"]) is str
    assert type(other["env"][0]["name"]) is str
    alone = {"metadata": {"name": "chat"}, "spec": body["spec"]}
    assert type(mark_blanks(alone)["spec"]["template"]["containers"][0]["name"]) is str


@pytest.mark.parametrize("field", ["containers", "initContainers", "volumes", "volumeMounts"])
def test_a_word_in_capitals_that_ends_with_name_is_one(field: str) -> None:
    text = f"kind: Pod\nspec:\n    {field}:\n    - name: PSTORE_PV_NAME\n    - name: SERVER"
    assert may_have_blanks(text)
    marked = mark_blanks(yaml.safe_load(text))["spec"][field]
    assert [type(item["name"]) for item in marked] == [Blank, str]
    assert mark_blanks({"env": [{"name": "PSTORE_NAME"}]}) == {"env": [{"name": "PSTORE_NAME"}]}


def test_a_word_in_brackets_is_one_where_a_list_is_not_allowed() -> None:
    container = {"image": ["URL"], "command": ["RUN"], "capabilities": {"drop": ["ALL"]}}
    marked = mark_blanks(container)
    assert all(may_have_blanks(text) for text in ("image: [URL]", "  image : ['URL']"))
    assert isinstance(marked["image"], Blank)
    assert str(marked["image"]) == "[URL]"
    assert marked == {**container, "image": "[URL]"}


@pytest.mark.parametrize("value", [[], ["URL", "TAG"], ["app:v1"], [["URL"]], [7]])
def test_another_list_is_none(value: list[object]) -> None:
    assert mark_blanks({"image": value}) == {"image": value}


def test_a_placeholder_is_a_text_that_is_not_known() -> None:
    marked = mark_blanks({"metadata": "${METADATA}", "name": "chat"})
    assert marked == {"metadata": "${METADATA}", "name": "chat"}
    assert is_unresolved(marked["metadata"])
    assert not is_unresolved(marked["name"])
    because = "'${METADATA}' is a placeholder, to be filled in first"
    assert unknown_in(marked["metadata"]) == Unknown(because)
    assert mapping(marked["metadata"]).get("name") == Unknown(because)


def test_an_object_without_placeholders_is_the_same_object() -> None:
    body = {
        "spec": {"containers": [{"command": ["vllm", "serve", "m"], "env": []}]},
        "n": [1, None],
    }
    assert mark_blanks(body) is body


@pytest.mark.parametrize("key", ["data", "stringData", "binaryData"])
def test_files_in_a_config_map_are_left_alone(key: str) -> None:
    body = {key: {"start.sh": "$X", "token": "<token>"}}
    assert mark_blanks(body) is body


def container(*words: str, **env: str) -> dict[str, Any]:
    listed = [{"name": name, "value": value} for name, value in env.items()]
    return {"name": "main", "command": ["vllm", "serve"], "args": list(words), "env": listed}


def tensor_of(*words: str, **env: str) -> object:
    marked = mark_blanks(container(*words, **env), {"LWS_GROUP_SIZE"})
    variables = {item["name"]: item["value"] for item in marked["env"]}
    facts = read_command([*marked["command"], *marked["args"]], variables)
    assert facts is not None
    assert isinstance(facts.pipeline, int)  # what is stated beside it is known
    return facts.tensor


BECAUSE = Unknown("it is a placeholder, to be filled in first")


@pytest.mark.parametrize("placeholder", ["${TP}", "$TP", "{{ tp }}", "<tp>", "PLACEHOLDER_TP"])
def test_of_a_word_only_the_placeholder_is_not_known(placeholder: str) -> None:
    assert tensor_of("m", f"--tensor-parallel-size={placeholder}", "-pp=2") == BECAUSE
    assert tensor_of("m", "--tensor-parallel-size", placeholder, "-pp=2") == BECAUSE


def test_a_variable_of_the_container_is_no_placeholder() -> None:
    # No shell expands it, and the engine refuses it: engine-option-known says so.
    forgotten = tensor_of("m", "-tp=${TP}", TP="8")
    assert isinstance(forgotten, Unknown)
    assert "which no shell expands" in forgotten.because
    controllers = tensor_of("m", "-tp=$LWS_GROUP_SIZE")
    assert isinstance(controllers, Unknown)
    assert "which no shell expands" in controllers.because


def test_a_variable_in_a_script_is_the_shells() -> None:
    line = "vllm serve m -tp $TP --model-name {{ name }} <<EOF >/dev/null"
    marked = mark_blanks({"command": ["sh", "-c", line], "env": []})
    expected = f"vllm serve m -tp $TP --model-name {BLANK_WORD} <<EOF >/dev/null"
    assert marked["command"][2] == expected


@pytest.mark.parametrize(
    "body", [[], {"command": None}, {"args": {"a": "$X"}}, {"env": "x", "command": 3}]
)
def test_odd_containers_are_read_all_the_same(body: Any) -> None:
    mark_blanks(body)


@pytest.mark.parametrize("part", ["{{", "${a", "<a", "A_", "<", "PLACEHOLDER ", "$A", "YOUR_"])
def test_long_texts_come_to_an_end(part: str) -> None:
    text = part * 300_000
    with no_hang(part):
        is_blank(text)
        may_have_blanks(text)
        mark_blanks({"command": [text, f"{text} "]})


@pytest.mark.parametrize(
    ("name", "text", "is_blank"),
    [
        ("run.sh", "vllm serve m --tensor-parallel-size {{ tp }}", True),
        ("start", "#!/bin/bash\nvllm serve {{ .Values.model }}\n", True),
        ("run.sh", "vllm serve m --tensor-parallel-size ${TP}", False),
        ("chat.jinja", "{{ messages }}", False),
        ("run.py", "print(f'{{ x }}')", False),
        ("run.sh", 'curl -d \'{"a": {"b": {}}}\'', False),
        ("run.sh", 3, False),
    ],
)
def test_a_script_in_a_config_map_may_be_a_template(
    name: str, text: object, *, is_blank: bool
) -> None:
    body = {"kind": "ConfigMap", "data": {name: text}}
    marked = mark_blanks(body)
    assert isinstance(marked["data"][name], Blank) is is_blank
    assert marked["data"] == body["data"]


CAPITALS = [
    (["--max-model-len", "MAX_MODEL_LEN"], ["--max-model-len", BLANK_WORD]),
    (["--port=PORT"], [f"--port={BLANK_WORD}"]),
    (["-tp", "GPU_COUNT"], ["-tp", BLANK_WORD]),
    (["serve m --port PORT \\\n -tp GPUS"], [f"serve m --port {BLANK_WORD} \\\n -tp {BLANK_WORD}"]),
    (["--attention-backend", "FLASH_ATTN"], ["--attention-backend", "FLASH_ATTN"]),
    (["--dtype=AUTO"], ["--dtype=AUTO"]),
    (["PORT", "--port", "$(PORT)"], ["PORT", "--port", "$(PORT)"]),
    (["--unknown-option", "PORT"], ["--unknown-option", "PORT"]),
]


@pytest.mark.parametrize(("words", "marked"), CAPITALS)
def test_a_word_in_capitals_is_a_placeholder_where_a_number_belongs(
    words: list[str], marked: list[str]
) -> None:
    env = [{"name": "PORT", "value": "80"}]
    made = mark_blanks({"args": words, "env": env}, (), takes_number)
    assert made["args"] == marked
    assert mark_blanks({"args": words, "env": env})["args"] == words


@pytest.mark.parametrize("text", ["--port PORT", "- --port\n- PORT", '["-tp", "GPUS"]'])
def test_a_file_with_such_a_word_may_have_placeholders(text: str) -> None:
    assert may_have_blanks(text)


def test_words_that_a_chart_leaves_empty_are_placeholders() -> None:
    words = ["serve", "", "--port=", None, "-tp=8", "x="]
    marked = ["serve", BLANK_WORD, f"--port={BLANK_WORD}", BLANK_WORD, "-tp=8", "x="]
    body = {"spec": {"containers": [{"args": words, "env": [{"name": "A", "value": ""}]}]}}
    container = mark_empty(body)["spec"]["containers"][0]
    assert container == {"args": marked, "env": [{"name": "A", "value": ""}]}


def test_a_size_named_data_is_a_field_like_others() -> None:
    assert isinstance(mark_blanks({"parallelism": {"data": "${N}"}})["parallelism"]["data"], Blank)


@pytest.mark.parametrize(
    "field", ["serviceAccountName", "priorityClassName", "runtimeClassName", "claimName"]
)
def test_a_name_of_another_object_has_no_capitals(field: str) -> None:
    assert may_have_blanks(f"{field}: KSA_NAME\n")
    marked = mark_blanks({"spec": {field: "KSA_NAME"}})
    assert type(marked["spec"][field]) is Blank
    stated = {"spec": {field: "High_Prio"}}
    assert mark_blanks(stated) == stated
    assert type(mark_blanks(stated)["spec"][field]) is not Blank


@pytest.mark.parametrize("kind", ["secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef"])
def test_a_reference_to_an_object_has_no_capitals(kind: str) -> None:
    assert may_have_blanks(f"  {kind}:\n    name: HF_SECRET\n")
    assert may_have_blanks(f"  {kind}:\n    key: TOKEN\n    name: HF_SECRET\n")
    marked = mark_blanks({"valueFrom": {kind: {"name": "HF_SECRET", "key": "HF_TOKEN"}}})
    assert type(marked["valueFrom"][kind]["name"]) is Blank
    assert marked["valueFrom"][kind]["key"] == "HF_TOKEN"
    assert type(marked["valueFrom"][kind]["key"]) is str
