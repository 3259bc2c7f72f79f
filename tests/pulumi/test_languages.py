"""What the provider does under programs of other languages, as the real engine runs them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.convert.output import objects_of, write_typescript
from kthena_components.convert.conversion import SAME, Changes
from kthena_components.convert.convert import convert
from kthena_components.languages import schema_text
from tests.pulumi.languages import (
    EXAMPLES,
    SECRET,
    compiled,
    example,
    files_of,
    in_yaml,
    install,
    missing,
    serving,
    told,
)
from tests.support.convertible import leader_worker_set
from tests.support.engine import ROOT, Stack
from tests.support.pages import block
from tests.support.shared import Shared

pytestmark = pytest.mark.programs
TEN_LINES = ROOT / "examples" / "ten-lines"
RENDER = {"kubernetes:renderYamlToDirectory": "rendered"}
Make = Callable[..., Stack]


@pytest.fixture(scope="module", name="found")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return install(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module", name="python")
def rendered_by_python(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    stack = Stack.make(TEN_LINES, "dev", tmp_path_factory.mktemp("python"))
    stack.change(lambda config: config.update(RENDER))
    stack.up().require()
    return files_of(stack)


@pytest.fixture(name="program")
def yaml_program(tmp_path: Path, found: dict[str, str]) -> Make:
    if why := missing("yaml"):
        pytest.skip(why)
    return lambda **resources: in_yaml(tmp_path, found, resources)


@pytest.mark.parametrize("language", ["yaml", "go"])
def test_a_language_renders_what_python_renders(
    language: str, tmp_path: Path, found: dict[str, str], python: dict[str, bytes], shared: Shared
) -> None:
    if why := missing(language):
        pytest.skip(why)
    stack = example(language, tmp_path, found, shared)
    run = stack.up()
    run.require()
    assert files_of(stack) == python
    assert stack.outputs == {"endpoint": "http://chat.default.svc:80"}
    shown, _, _ = block("docs/languages.md", " +  kthena:index").partition("\n\n")
    made = {f" +  {step.type} {step.name} create" for step in run.steps if step.op == "create"}
    assert {*shown.splitlines()} == {line for line in made if " pulumi:" not in line}
    assert stack.preview("--expect-no-changes").code == 0


def test_the_engine_reads_the_committed_schema(tmp_path: Path, found: dict[str, str]) -> None:
    stack = Stack.make(EXAMPLES / "yaml", "dev", tmp_path, found)
    read = stack.pulumi("package", "get-schema", "kthena")
    read.require()
    assert_has(yaml.safe_load(read.text), json.loads(schema_text()))


def assert_has(read: Any, stated: Any) -> None:
    """Compare what was stated; the engine adds defaults of its own."""
    if isinstance(stated, dict):
        for key, value in stated.items():
            assert_has(read[key], value)
    else:
        assert read == stated


def test_a_stack_goes_on_in_another_language(tmp_path: Path, found: dict[str, str]) -> None:
    if why := missing("yaml"):
        pytest.skip(why)
    stack = Stack.make(TEN_LINES, "dev", tmp_path, found)
    stack.change(lambda config: config.update(RENDER))
    stack.up().require()
    made, before = {r["urn"] for r in stack.resources}, files_of(stack)
    (stack.project / "__main__.py").unlink()
    (stack.project / "Pulumi.yaml").write_bytes((EXAMPLES / "yaml/Pulumi.yaml").read_bytes())
    run = stack.up()
    run.require()
    assert {step.type for step in run.steps} <= {"pulumi:providers:kthena"}
    assert {r["urn"] for r in stack.resources if "providers:kthena" not in r["urn"]} == made
    assert files_of(stack) == before


def test_a_refusal_names_the_fields_as_they_were_written(program: Make) -> None:
    args = serving(labels={"team": "${word}"}, recoveryPolicy="RoleRecreate")
    (role,) = args["properties"]["roles"]
    role["workerReplicas"] = -1
    role["engine"]["kvTransfer"] = {"role": "prefil", "connector": "nixl"}
    stack = program(chat=args)
    run = stack.up()
    assert run.code != 0
    (message,) = (text for text in told(run) if "is refused" in text)
    assert message == (
        "kthena:index:ModelServing resource 'chat' has a problem: "
        "ModelServing 'chat' is refused: 2 problems\n"
        "  roles[0].workerReplicas: is -1, but must be at least 0. Write at least 0. [range]\n"
        "  roles[0].engine.kvTransfer.role: is 'prefil', but must be one of 'prefill', 'decode', "
        "'both'. Write 'prefill'. [known-value]"
    )
    assert "Traceback" not in run.text
    assert SECRET not in run.text
    assert not [r for r in stack.resources if not r["type"].startswith("pulumi:")]
    assert not files_of(stack)


def test_a_remedy_names_the_fields_of_the_language(program: Make) -> None:
    args = serving(recoveryPolicy="ServingGroupRecreate", restartGracePeriodSeconds=5)
    (message,) = (text for text in told(program(chat=args).preview()) if "is refused" in text)
    assert "restartGracePeriodSeconds: " in message
    assert "_seconds" not in message


def test_a_secret_stays_secret_in_the_state(program: Make) -> None:
    stack = program(chat=serving(labels={"team": "${word}"}))
    preview, up = stack.preview("--diff"), stack.up()
    up.require()
    assert SECRET not in preview.text + up.text + stack.state_text
    assert {body["metadata"]["labels"]["team"] for body in stack.rendered().values()} == {SECRET}


def test_values_that_are_not_known_yet_pass_at_any_depth(program: Make) -> None:
    args = serving(queue="${research.name}")
    args["properties"]["roles"][0]["huggingFaceToken"] = {"name": "${research.name}"}
    stack = program(research={"type": "kthena:Queue"}, chat=args)
    preview = stack.preview()
    preview.require()
    assert preview.ops("StatefulSet") == {"create": 2}
    stack.up().require()
    made = stack.rendered()
    assert made["PodGroup/chat-0"]["spec"]["queue"] == "research"
    (engine,) = made["StatefulSet/chat-0-serve-0"]["spec"]["template"]["spec"]["containers"]
    token = next(item for item in engine["env"] if item["name"] == "HF_TOKEN")
    assert token["valueFrom"]["secretKeyRef"]["name"] == "research"
    (group,) = (r for r in stack.resources if r["type"].endswith(":PodGroup"))
    assert any(urn.endswith("Queue::research") for urn in group["dependencies"])


def test_a_component_waits_for_what_it_depends_on(program: Make) -> None:
    first = {**serving(name="first"), "options": {"dependsOn": ["${second}"]}}
    run = program(first=first, second=serving(name="second")).up()
    run.require()
    names = [step.name for step in run.steps if step.kind in {"StatefulSet", "PodGroup"}]
    assert names == sorted(names, key=lambda name: name.startswith("first"))
    assert len(names) == 6


def test_a_renamed_component_keeps_its_resources(program: Make) -> None:
    stack = program(chat=serving(name="chat"))
    stack.up().require()
    settings = stack.project / "Pulumi.yaml"
    content: dict[str, Any] = yaml.safe_load(settings.read_text())
    renamed = {**content["resources"].pop("chat"), "options": {"aliases": [{"name": "chat"}]}}
    content["resources"]["talk"] = renamed
    settings.write_text(yaml.safe_dump(content))
    run = stack.up()
    run.require()
    assert run.steps == []
    assert any(r["urn"].endswith("ModelServing::talk") for r in stack.resources)


def test_an_update_that_a_partition_holds_back_is_refused(program: Make) -> None:
    held = {"type": "ServingGroupRollingUpdate", "rollingUpdateConfiguration": {"partition": 1}}
    stack = program(chat=serving(backend="kthena", replicas=2, rolloutStrategy=held))
    stack.up().require()
    settings = stack.project / "Pulumi.yaml"
    content: dict[str, Any] = yaml.safe_load(settings.read_text())
    content["resources"]["chat"]["properties"]["roles"][0]["replicas"] = 2
    settings.write_text(yaml.safe_dump(content))
    for run in (stack.preview(), stack.up()):
        assert run.code != 0
        assert "changes from 1 to 2 with a partition that holds 1 of 2 groups back" in run.text


def test_two_components_of_one_program_create_no_object_twice(program: Make) -> None:
    run = program(one=serving(name="chat"), two=serving(name="chat")).preview()
    assert run.code != 0
    assert "[object-twice]" in run.text


def test_a_relative_path_starts_at_the_program(program: Make) -> None:
    args = serving()
    args["properties"]["roles"][0]["engine"]["hfConfig"] = "config.json"
    stack = program(chat=args)
    sizes = {"num_attention_heads": 6, "num_hidden_layers": 80}
    (stack.project / "config.json").write_text(json.dumps(sizes))
    assert "splits 6 attention heads over tensor 8" in stack.preview().text


@pytest.fixture(scope="module", name="typescript")
def installed_typescript(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, str], shared: Shared
) -> Callable[[str], Stack]:
    """Install the packages of the example once, and run other programs in its place."""
    if why := missing("typescript"):
        pytest.skip(why)
    stack = example("typescript", tmp_path_factory.mktemp("typescript"), found, shared)

    def with_program(text: str) -> Stack:
        (stack.project / "index.ts").write_text(text)
        return stack

    return with_program


def test_typescript_renders_what_python_renders(
    typescript: Callable[[str], Stack], python: dict[str, bytes]
) -> None:
    stack = typescript(IN_TYPESCRIPT)
    assert compiled(stack) == ""
    stack.up().require()
    assert files_of(stack) == python
    assert stack.preview("--expect-no-changes").code == 0


def test_typescript_finds_slips(typescript: Callable[[str], Stack]) -> None:
    head, _, body = IN_TYPESCRIPT.partition("const chat = ")
    misspelt = body.replace("workerReplicas: 1", "worker_replicas: 1").replace("chat.", "one.")
    other = body.partition("export")[0].replace('"vllm"', '"vlm"')
    told = compiled(typescript(f"{head}const one = {misspelt}const two = {other}"))
    assert "'worker_replicas' does not exist in type" in told
    assert "'\"vlm\"' is not assignable to type 'EngineKind'" in told


def test_a_provider_is_passed_to_the_resources_of_a_component(
    typescript: Callable[[str], Stack], python: dict[str, bytes]
) -> None:
    end = "    expose: { port: 80 },\n})"
    text = IN_TYPESCRIPT.replace("const chat", FILES).replace(end, f"{end[:-1]}, own)")
    stack = typescript(text)
    stack.up().require()
    written = {path.name for path in (stack.project / "elsewhere").glob("**/*.yaml")}
    assert written == set(python)


def test_a_converted_program_compiles_and_renders_the_same_object(
    typescript: Callable[[str], Stack],
) -> None:
    source = leader_worker_set()
    pod = source["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    odd = {"name": "ODD", "value": 'a "b" \\n `${c}` \u2028 </script> // é'}
    pod["containers"][0]["env"] = [odd]
    pod["nodeSelector"] = {"a.b/c-d": "1", "constructor": "x"}
    found = convert([source], Changes(target=SAME))
    stack = typescript(write_typescript(found.servings, "lws.yaml"))
    assert compiled(stack) == ""
    stack.up().require()
    (expected,) = (body for part in found.parts for body in objects_of(part))
    (made,) = (b for key, b in stack.rendered().items() if key.startswith("LeaderWorkerSet/"))
    assert made == expected


IN_TYPESCRIPT = (EXAMPLES / "typescript" / "index.ts").read_text()
FILES = """import * as pulumi from "@pulumi/pulumi";
class Files extends pulumi.ProviderResource {
    constructor() { super("kubernetes", "files", { renderYamlToDirectory: "elsewhere" }); }
}
const own = { providers: { kubernetes: new Files() } };
const chat"""
"""A provider of the program, which the component gets over the wire."""


def test_a_program_deploys_to_two_clusters(program: Make) -> None:
    """The program of the page. The provider that is built here has no schema of its settings."""
    stack = program(chat=serving())
    content = yaml.safe_load(block("docs/how-to/two-clusters.md", "name: chat"))
    content |= {"name": "ten-lines", "packages": {}}
    for region in ("east", "west"):
        assert content["resources"][region].pop("properties") == {"context": f"gpu-{region}"}
    (stack.project / "Pulumi.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    preview = stack.preview()
    preview.require()
    assert preview.ops("StatefulSet") == {"create": 2}
    made = [step.name for step in preview.steps if step.kind == "StatefulSet"]
    assert [sum(region in name for name in made) for region in ("east", "west")] == [1, 1]
