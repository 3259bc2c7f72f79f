"""What the engine is answered, without the engine: tests/pulumi/test_languages.py has that."""

from contextvars import copy_context
from typing import Any

import pulumi
import pytest

from kthena_components import __version__
from kthena_components.languages import schema_text
from kthena_components.provider.host import KthenaProvider
from tests.support.pages import block
from tests.support.recorder import Recorded, attempt

PARALLELISM = {"tensor": 8.0, "pipeline": 2.0}
ENGINE = {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "model": "own/model"}
ROLE = {
    "name": "serve",
    "workerReplicas": 1.0,
    "engine": {**ENGINE, "parallelism": PARALLELISM},
    "resources": {"gpusPerPod": 8.0},
}


def construct(inputs: dict[str, Any], kind: str = "kthena:index:ModelServing") -> Recorded:
    """Construct a component in a context of its own, as the server does for each request."""
    provider = KthenaProvider()
    return attempt(lambda: copy_context().run(provider.construct, "chat", kind, inputs))


def test_the_schema_and_the_version_are_those_of_the_package() -> None:
    provider = KthenaProvider()
    assert (provider.schema, provider.version) == (schema_text(), __version__)


def test_numbers_and_names_of_the_wire_become_those_of_the_specs() -> None:
    made = construct({"roles": [ROLE], "restartGracePeriodSeconds": 5.0, "backend": "kthena"})
    assert made.error is None
    (serving,) = made.of_kind("ModelServing")[-1:]
    assert serving.props["spec"]["template"]["restartGracePeriodSeconds"] == 5


def test_a_refusal_is_one_text_without_values_of_properties() -> None:
    made = construct({"roles": [{**ROLE, "workerReplicas": -1.0}]})
    assert made.resources == []
    assert isinstance(made.error, pulumi.InputPropertiesError)
    assert not isinstance(made.error, pulumi.RunError), "the engine would get no message"
    assert made.error.errors == []
    assert str(made.error) == (
        "ModelServing 'chat' is refused: 1 problem\n"
        "  roles[0].workerReplicas: is -1, but must be at least 0. Write at least 0. [range]"
    )


def test_the_page_quotes_a_refusal() -> None:
    made = construct({"roles": [ROLE], "expose": {"port": 80.0, "targetPort": 99999999.0}})
    _, _, shown = block("docs/languages.md", "error: kthena:index").partition("has a problem: ")
    assert f"{made.error}\n" == shown


def test_messages_name_the_fields_as_the_user_writes_them() -> None:
    engine = {**ENGINE, "parallelism": PARALLELISM, "extraArgs": ["--no-such-flag=1"]}
    waivers = {"engine-option-known": "2999-12-31 the image is our own"}
    made = construct({"roles": [{**ROLE, "engine": engine}], "waivers": waivers})
    assert made.error is None
    (told,) = (text for _, text, _ in made.logs if "engine-option-known" in text)
    assert told.startswith("roles[0].engine.extraArgs: engine 'serve': vLLM 0.33.0 has no option")


@pytest.mark.parametrize("token", ["kthena:index:Nothing", "other:index:ModelServing"])
def test_an_unknown_component_is_an_error(token: str) -> None:
    assert isinstance(construct({}, token).error, KeyError)
