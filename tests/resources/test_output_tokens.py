"""Outputs that travel through the pure code as text."""

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi_kubernetes.core.v1 import Namespace

from kthena_components.core.findings import SpecError
from kthena_components.core.values.display import escaped
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, is_unresolved
from kthena_components.resources._outputs import Outputs, to_tokens, without_tokens
from kthena_components.systems import EMITTERS
from tests.resources.build import late, serving, unknown
from tests.support.recorder import UNKNOWN, Recorded, attempt, record, secrets_in
from tests.support.specs import ENGINE_RAY, changed, example_for


class Colour(StrEnum):
    RED = "red"


class Number(Enum):
    ONE = 1


@pulumi.input_type
class PodArgs:
    """Stands for the args classes of Pulumi's SDKs."""


def exported(make: Callable[[], Any], *, preview: bool = False) -> Any:
    return record(lambda: pulumi.export("value", make()), preview=preview).exports["value"]


def hidden(args: Mapping[str, Any]) -> dict[str, Any]:
    return to_tokens(args)[0]


def findings(args: object) -> list[str]:
    with pytest.raises(SpecError) as refused:
        to_tokens(args)
    return [str(finding) for finding in refused.value.findings]


def test_plain_data_stays_as_it_is() -> None:
    args = {"a": [1, "two", None, True], "b": {"c": 1.5}}
    plain, carried = to_tokens(args)
    assert plain == args
    assert carried.restore(plain) is plain


def test_members_of_enums_become_their_values() -> None:
    plain = hidden({"a": Colour.RED, "b": (Colour.RED, Number.ONE), Colour.RED: "key"})
    assert plain == {"a": "red", "b": ["red", 1], "red": "key"}
    assert type(plain["a"]) is str


def test_whole_floats_become_numbers_without_a_fraction() -> None:
    plain = hidden({"remote": 8.0, "share": 0.9})
    assert plain == {"remote": 8, "share": 0.9}
    assert type(plain["remote"]) is int


def test_an_output_becomes_a_token_and_comes_back_itself() -> None:
    def program() -> None:
        image = late("vllm")
        plain, carried = to_tokens({"image": image})
        assert is_unresolved(plain["image"])
        assert carried.restore(plain)["image"] is image

    record(program)


def test_the_same_output_has_the_same_token() -> None:
    def program() -> None:
        image, other = late("a"), late("a")
        plain = hidden({"one": image, "two": [image, other]})
        assert plain["one"] == plain["two"][0] != plain["two"][1]

    record(program)


def test_a_token_stays_when_other_outputs_and_roles_come() -> None:
    def token(roles: list[dict[str, Any]], **more: Any) -> Any:
        plain = hidden({**more, "roles": roles})
        return next(role["image"] for role in plain["roles"] if role["name"] == "decode")

    def program() -> None:
        decode = {"name": "decode", "image": late("a")}
        prefill = {"name": "prefill", "image": late("b")}
        alone = token([decode])
        assert alone == token([prefill, decode], namespace=late("c"))

    record(program)


def test_two_outputs_at_one_address_have_two_tokens() -> None:
    def program() -> None:
        plain = hidden(
            {"env": [{"name": "A", "value": late("a")}, {"name": "A", "value": late("b")}]}
        )
        assert plain["env"][0]["value"] != plain["env"][1]["value"]

    record(program)


def test_awaitables_are_outputs_too() -> None:
    async def image() -> str:
        return "vllm:v1"

    def make() -> Any:
        plain, carried = to_tokens({"image": image()})
        return carried.restore(f"pull {plain['image']} now")

    assert exported(make) == "pull vllm:v1 now"


def test_outputs_inside_a_longer_text_are_joined_with_it() -> None:
    def make() -> Any:
        plain, carried = to_tokens({"a": late("one"), "b": late("{two}")})
        return carried.restore({"command": [f"--x={plain['a']} {{}} {plain['b']}", plain["a"]]})

    assert exported(make) == {"command": ["--x=one {} {two}", "one"]}


def test_a_secret_stays_secret_inside_a_longer_text() -> None:
    def make() -> Any:
        plain, carried = to_tokens({"a": pulumi.Output.secret("hidden")})
        return carried.restore(f"--key={plain['a']}")

    assert list(secrets_in(exported(make))) == ["--key=hidden"]


def test_an_unknown_makes_the_whole_text_unknown() -> None:
    def make() -> Any:
        plain, carried = to_tokens({"a": unknown()})
        return carried.restore(f"--id={plain['a']}")

    assert exported(make, preview=True) == UNKNOWN


def test_only_text_can_stand_inside_a_text() -> None:
    def program() -> None:
        plain, carried = to_tokens({"a": pulumi.Output.secret(7)})
        pulumi.export("value", carried.restore(f"--port={plain['a']}"))

    error = attempt(program).error
    assert isinstance(error, pulumi.RunError)
    assert str(error) == (
        "an Output inside the text '--port=<Output>' gave a int, but only text can be part of a "
        "string. Convert it to text, for a number with .apply(str)."
    )


def test_equal_texts_share_one_output() -> None:
    def program() -> None:
        plain, carried = to_tokens({"a": late("x")})
        text = f"--x={plain['a']}"
        assert carried.restore(text) is carried.restore(text)

    record(program)


def test_without_outputs_nothing_is_walked() -> None:
    body = {"spec": object()}
    assert Outputs({}).restore(body) is body


@pytest.mark.parametrize("character", [OUTPUT_OPEN, OUTPUT_CLOSE])
def test_text_that_could_be_a_token_is_refused(character: str) -> None:
    (found,) = findings({"roles": [{"name": f"a{character}b"}]})
    assert found == (
        f"roles[0].name: is 'a{escaped(character)}b', but must be text without the characters "
        "U+E000 and U+E001, which mark Outputs here. Remove them. [type]"
    )


def test_args_objects_are_refused_with_the_remedy() -> None:
    found = findings({"roles": [{"entry_template": PodArgs()}], "x": {1, 2}})
    assert found[0] == (
        "roles[0].entry_template: is of the type PodArgs, but must be plain data: a map, a "
        "list, text or a number. Write its fields as a map. [type]"
    )
    assert found[1] == (
        "x: is of the type set, but must be plain data: a map, a list, text or a number. Convert "
        "it to a list with list(…), or a set with sorted(…). [type]"
    )
    assert findings({"model": Path("a")})[0].endswith("Convert it to text with str(…). [type]")
    assert "list(…)" in findings({"roles": iter(["a"])})[0]


def test_a_resource_is_refused_with_what_to_pass() -> None:
    """`namespace=namespace` is frequent: the object in place of its name."""
    refused: list[str] = []

    def make() -> None:
        args = {"namespace": Namespace("ai"), "queue": pulumi.ComponentResource("a:b:C", "c")}
        refused.extend(findings(args))

    record(make)
    start = "but must be plain data: a map, a list, text or a number. Pass"
    assert refused == [
        (
            f"namespace: is of the type Namespace, {start} its name, not the object: "
            ".metadata.name, or the text. [type]"
        ),
        (
            f"queue: is of the type ComponentResource, {start} one of its outputs, not the "
            "object. [type]"
        ),
    ]


def test_keys_must_be_text() -> None:
    assert findings({"labels": {8080: "a"}}) == [
        "labels.<key>: is 8080, but must be text, as every key is. Write it as text. [type]"
    ]


def test_an_output_cannot_be_a_key() -> None:
    def program() -> None:
        (found,) = findings({"labels": {late("a"): late("b")}})
        assert found.startswith("labels.<key>: is an Output, but must be text")

    record(program)


@pytest.mark.parametrize(("args", "shown"), [(None, "null"), ([], "a list"), ("chat", "'chat'")])
def test_args_must_be_a_mapping(args: object, shown: str) -> None:
    assert findings(args) == [f"is {shown}, but must be a map of fields. Write a map. [type]"]


def test_a_token_is_shown_to_readers_as_an_output() -> None:
    assert without_tokens(f"is '{OUTPUT_OPEN}12{OUTPUT_CLOSE}'") == "is '<Output>'"


def chat(changes: Mapping[str, Callable[[], object]], *, preview: bool = False) -> Recorded:
    """Register a serving with Outputs, which only a running program can make, at some paths."""
    marks = {path: f"mark-{i}" for i, path in enumerate(changes)}

    def put(value: Any, made: Mapping[str, object]) -> Any:
        if isinstance(value, dict):
            return {key: put(item, made) for key, item in value.items()}
        if isinstance(value, list):
            return [put(item, made) for item in value]
        return made.get(value, value) if isinstance(value, str) else value

    def program() -> None:
        made = {mark: changes[path]() for path, mark in marks.items()}
        serving(put(changed(ENGINE_RAY, marks), made))

    return record(program, preview=preview)


ENGINE = "roles[0].engine"


def container(seen: Recorded) -> Any:
    pods = seen.named("chat-0-decode-0", "StatefulSet").props["spec"]["template"]
    return pods["spec"]["containers"][0]


def test_image_model_and_secret_name_reach_the_pods() -> None:
    seen = chat(
        {
            f"{ENGINE}.image": lambda: late("registry/vllm:v0.10.1"),
            f"{ENGINE}.model": lambda: late("org/model"),
            "roles[0].hugging_face_token.name": lambda: late("token"),
        }
    )
    written = container(seen)
    assert written["image"] == "registry/vllm:v0.10.1"
    assert "org/model" in " ".join(written["command"])
    assert written["env"][0]["valueFrom"]["secretKeyRef"]["name"] == "token"


@pytest.mark.parametrize("backend", EMITTERS)
def test_every_backend_takes_an_image_and_a_model_that_are_known_late(backend: str) -> None:
    args = ENGINE_RAY if backend == "native" else example_for(backend, "native-8b")
    names = {"image": "registry/vllm:v1", "model": "org/private"}

    def program() -> None:
        (role, *_) = args["roles"]
        engine = {**role["engine"], **{field: late(name) for field, name in names.items()}}
        serving({**args, "roles": [{**role, "engine": engine}]})

    seen = record(program)
    texts = [str(each.props) for each in seen.resources]
    assert all(any(name in text for text in texts) for name in names.values())
    assert not [text for text in texts if OUTPUT_OPEN in text]
    notes = [text for text in seen.infos() if "[image-pinned]" in text]
    assert [text.partition("because ")[2] for text in notes] == [
        "the image is known only after the deployment. [image-pinned]"
    ]


def test_a_secret_image_is_secret_in_every_request() -> None:
    seen = chat({f"{ENGINE}.image": lambda: pulumi.Output.secret("private/vllm:v1")})
    assert list(secrets_in(container(seen))) == ["private/vllm:v1"]
    plain = [
        r.urn for r in seen.resources if "private" in str(r.props) and not list(secrets_in(r.props))
    ]
    assert plain == []


def test_unknown_values_do_not_stop_a_preview() -> None:
    seen = chat({f"{ENGINE}.image": unknown}, preview=True)
    assert container(seen)["image"] == UNKNOWN


def test_no_token_is_left_in_any_request() -> None:
    seen = chat({f"{ENGINE}.image": lambda: late("a:1"), f"{ENGINE}.model": lambda: late("b")})
    texts = [str(r.props) + str(r.outputs) + r.name for r in seen.resources] + seen.infos()
    assert not [text for text in texts if is_unresolved(text) or OUTPUT_OPEN in text]


def test_what_uses_an_output_depends_on_its_resource() -> None:
    seen = chat({f"{ENGINE}.model": unknown})
    assert "Thing/thing" in seen.waits_for(seen.named("chat-0-decode-0", "StatefulSet"))
