"""`kthena_components.testing`: programs under mocks, several in one process."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from kthena_components import ModelServing
from kthena_components.testing import ProgramResult, run_program
from tests.resources.build import serving
from tests.support.pages import block
from tests.support.recorder import record

ENGINE: Any = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
ROLE: Any = {
    "name": "serve",
    "worker_replicas": 1,
    "resources": {"gpus_per_pod": 8},
    "engine": ENGINE,
}


def chat() -> None:
    made = ModelServing("chat", {"roles": [ROLE], "expose": {"port": 80}})
    pulumi.export("endpoint", made.endpoint)
    pulumi.export("pods", made.pod_count)


def three_stages() -> None:
    engine = {**ENGINE, "parallelism": {"tensor": 8, "pipeline": 3}}
    serving({"roles": [{**ROLE, "engine": engine}]}, name="chat")


def late_error() -> None:
    chat()
    pulumi.export("never", pulumi.Output.from_input(0).apply(lambda zero: 1 // zero))


def outcome(program: Callable[[], object]) -> object:
    """Give what a run returns or raises."""
    try:
        return run_program(program)
    except ZeroDivisionError as error:
        return str(error)


def test_it_returns_manifests_and_outputs() -> None:
    made = run_program(chat)
    assert made.findings == ()
    assert [one["kind"] for one in made.manifests] == [
        "PodGroup", "Service", "Service", "Service", "StatefulSet", "StatefulSet",
    ]  # fmt: skip
    assert made.outputs == {"endpoint": "http://chat.default.svc:80", "pods": 2}
    entry = made.manifest("StatefulSet", "chat-0-serve-0")
    (container,) = entry["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] in {8, "8"}
    with pytest.raises(KeyError, match="no Deployment chat; there are: PodGroup chat-0"):
        made.manifest("Deployment", "chat")


def test_runs_of_one_process_do_not_see_each_other() -> None:
    alone = {program: outcome(program) for program in (chat, three_stages, late_error)}
    refused = alone[three_stages]
    assert isinstance(refused, ProgramResult)
    assert not refused.manifests
    assert [finding.rule for finding in refused.findings] == ["world-size-equals-gpus"]
    assert alone[late_error] == "integer division or modulo by zero"
    for order in permutations(alone):
        for program in order:
            assert outcome(program) == alone[program], [each.__name__ for each in order]
        record(chat)  # another run of Pulumi, which closes its event loop


def test_a_run_leaves_the_event_loop_and_the_mocks_of_its_caller_alone() -> None:
    async def inside() -> tuple[ProgramResult, str]:
        made = run_program(chat, project="other", stack="prod")
        await asyncio.sleep(0)
        return made, pulumi.get_stack()

    before = pulumi.get_stack(), pulumi.runtime.get_root_resource()
    made, stack = asyncio.run(inside())
    notes = made.manifest("PodGroup", "chat-0")["metadata"]["annotations"]
    assert notes["kthena-components/stack"] == "organization/other/prod"
    assert (stack, pulumi.runtime.get_root_resource()) == before


def test_config_names_secrets_and_objects_of_the_user() -> None:
    async def program() -> None:
        config = pulumi.Config()
        k8s.core.v1.Namespace("team", metadata={"name": config.require("team")})
        k8s.Provider("cluster", context="prod")
        pulumi.export("of", f"{pulumi.get_project()}/{pulumi.get_stack()}")
        token = pulumi.Output.secret("hidden")
        pulumi.export("token", token)
        k8s.core.v1.Secret("key", metadata={"name": "key"}, string_data={"token": token})
        pulumi.log.warn("careful")

    made = run_program(program, project="llm", stack="prod", config={"llm:team": "research"})
    assert made.manifest("Namespace", "research")["apiVersion"] == "v1"
    assert made.manifest("Secret", "key")["stringData"] == {"token": "hidden"}
    assert len(made.manifests) == 2
    assert made.outputs == {"of": "llm/prod", "token": "hidden"}
    assert made.warnings == ("careful",)
    with pytest.raises(pulumi.ConfigMissingError):
        run_program(program, project="llm")  # nothing stays of the config


def test_advice_of_a_component_is_a_warning_and_its_table_is_none() -> None:
    def program() -> None:
        pulumi.log.info("a note of the program")
        late: Any = {**ROLE, "engine": {**ENGINE, "image": "vllm/vllm-openai:latest"}}
        ModelServing("chat", {"roles": [late]})

    made = run_program(program)
    assert not made.findings
    assert [line.rpartition("[")[2] for line in made.warnings] == ["image-pinned]"]


def test_a_file_has_the_project_beside_it_and_its_config_needs_no_namespace(tmp_path: Path) -> None:
    told = (
        "import pulumi; pulumi.export('of', [pulumi.get_project(), pulumi.Config().get('image')])"
    )
    (tmp_path / "__main__.py").write_text(told, encoding="utf-8")
    expected = {
        "name: chat\nruntime: python\n": ("chat", "chat:image"),
        "name: [chat]\n": ("project", "project:image"),
        "name: {\n": ("project", "project:image"),
        "": ("project", "project:image"),
    }
    for settings, (project, key) in expected.items():
        (tmp_path / "Pulumi.yaml").write_text(settings, encoding="utf-8")
        for path in (tmp_path, tmp_path / "__main__.py"):
            for config in ({key: "a:1"}, {"image": "a:1"}):
                assert run_program(path, config=config).outputs == {"of": [project, "a:1"]}
        made = run_program(tmp_path, project="other", config={key: "a:1"})
        assert made.outputs == {"of": ["other", None]}


def test_mocks_answer_for_other_resources() -> None:
    class Mocks(pulumi.runtime.Mocks):
        def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
            known = {"outputs": {"team": "research"}} if "StackReference" in args.typ else {}
            return args.name, {**args.inputs, **known}

        def call(self, args: Any) -> Any:
            return args.args

    def program() -> None:
        base = pulumi.StackReference("acme/base/prod")
        k8s.core.v1.Namespace("team", metadata={"name": base.require_output("team")})

    assert run_program(program, mocks=Mocks()).manifest("Namespace", "research")


def test_two_resources_of_one_name_are_an_error() -> None:
    def program() -> None:
        for name in ("a", "b"):
            k8s.core.v1.Namespace("team", metadata={"name": name})

    with pytest.raises(Exception, match="two resources of type kubernetes:core/v1:Namespace"):
        run_program(program)


def test_a_file_runs_in_its_folder_and_is_read_again(tmp_path: Path) -> None:
    before = Path.cwd(), [*sys.path], {*sys.modules}
    (tmp_path / "__main__.py").write_text("import sizes, pulumi\npulumi.export('n', sizes.N)\n")
    for number in ("1", "20"):
        (tmp_path / "size.txt").write_text(number)
        (tmp_path / "sizes.py").write_text(
            "from pathlib import Path\nN = int(Path('size.txt').read_text())\n"
        )
        for path in (tmp_path, str(tmp_path / "__main__.py")):
            assert run_program(path).outputs == {"n": int(number)}
    assert (Path.cwd(), sys.path) == before[:2]
    assert "sizes" not in {*sys.modules} - before[2]


def test_the_tests_of_the_page_pass_in_a_project_of_a_user(tmp_path: Path) -> None:
    """Any order, warnings are errors, and no thread or event loop is left behind."""
    (tmp_path / "test_chat.py").write_text(block("docs/how-to/unit-tests.md", "from kthena"))
    command = (sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    ran = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in ran.stdout, ran.stdout


def test_it_loads_no_pytest() -> None:
    told = "import sys, kthena_components.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0
