"""Each block of each page is run or compared, or says why not. Blocks without a module are here."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from kthena_components.cli.main import main
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.pages.compared import COMPARED, NOT_COMPARED
from tests.pages.test_blocks import PROGRAM
from tests.pages.test_programs import PAGES, programs
from tests.support.for_each import for_each
from tests.support.pages import PROMPT, ROOT, File, block, items, pages, steps
from tests.support.specs import GUIDE, NATIVE_8B, Args, changed
from tests.systems.kaito.servings import LLAMA

RUNTIME = """
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: vllm, namespace: x}
spec:
  containers:
    - name: kserve-container
      image: vllm/vllm-openai:v0.33.0
      command: [vllm, serve]
      resources: {limits: {nvidia.com/gpu: 1}}
""".lstrip()
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: m, namespace: x}
spec:
  predictor:
    model:
      modelFormat:
        name: vllm
      runtime: vllm
      args: [org/m, --tensor-parallel-size=2]
"""
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{image: a/b:c,
  resources: {limits: {nvidia.com/gpu: 8}}}]}}}}}
""".lstrip()
WITH_RAY = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.33.0
      args: [--model=a/b, --nnodes=2, --node-rank=0, --distributed-executor-backend=ray]
      resources: {limits: {nvidia.com/gpu: 2}}
"""


def run_or_compared(page: str) -> Iterator[str]:
    """Give the blocks of a page that tests/pages runs, writes into files or compares."""
    if steps(page):
        yield from (item.text for item in items(page) if isinstance(item, File))
    for program in programs(page) if page in PAGES else ():
        yield program.text
        for language, text in program.shown:
            if language == "json" or (language == "yaml" and "kind:" in text):
                yield text


@cache
def others() -> Mapping[str, list[str]]:
    """List the blocks of each page that are not commands, and that tests/pages does not compare."""
    found: dict[str, list[str]] = {}
    for page in pages():
        tokens = MarkdownIt().parse((ROOT / page).read_text())
        known = {*run_or_compared(page)}
        found[page] = [
            one.content
            for one in tokens
            if one.type == "fence"
            and not one.content.startswith(PROMPT)
            and not (one.info in {"", "bash", "sh"} and PROGRAM.match(one.content))
            and one.content not in known
        ]
    return found


def unlisted(texts: list[str], starts: list[str]) -> tuple[list[str], list[str]]:
    """Give the blocks that no start names, and the starts that do not name exactly one block."""
    untold = [text for text in texts if not text.startswith(tuple(starts))]
    return untold, [s for s in starts if sum(text.startswith(s) for text in texts) != 1]


@for_each("page", pages(), ids=pages())
def test_a_block_that_is_not_run_is_compared_or_says_why_not(page: str) -> None:
    starts = [*COMPARED.get(page, {}), *NOT_COMPARED.get(page, {})]
    assert unlisted(others()[page], starts) == ([], [])


def test_a_block_that_nobody_knows_is_found() -> None:
    assert unlisted(["a: 1\n", "b: 2\n"], ["b:", "c:"]) == (["a: 1\n"], ["c:"])
    assert sum(map(len, others().values())) > 50


def test_a_module_that_compares_blocks_reads_their_page() -> None:
    rows = {(page, module) for page, starts in COMPARED.items() for module in starts.values()}
    assert {page for page, _ in rows} | {*NOT_COMPARED} <= {*pages()}
    silent = [
        (page, module)
        for page, module in rows
        if not (ROOT / module).is_file() or Path(page).stem not in (ROOT / module).read_text()
    ]
    assert silent == []


def in_role(fields: Mapping[str, Any]) -> Args:
    return changed(NATIVE_8B, {f"roles[0].{name}": value for name, value in fields.items()})


def fragments() -> Iterator[tuple[str, Args]]:
    """Give the fragments of servings on the pages, each in a serving that it fits."""
    options = yaml.safe_load(block("docs/backends/kthena.md", "backend_options:"))
    yield "autoscaling", {**GUIDE, "backend": "kthena", **options}
    page = "docs/production.md"
    yield "spread", {**NATIVE_8B, **yaml.safe_load(block(page, "spread_over: "))}
    for start in ("overlay:", "network:"):
        yield start, in_role(yaml.safe_load(block(page, start)))
    for line in block(page, "cache: ").splitlines():
        yield line, in_role(yaml.safe_load(line))


@for_each("name, args", fragments())
def test_a_fragment_can_be_used(name: str, args: Args) -> None:
    assert compile_serving(args).manifests, name


def test_mpirun_is_what_the_engine_starts() -> None:
    names: dict[str, Any] = {"EngineArgs": dict}
    exec(block("docs/engines.md", "engine: EngineArgs"), names)  # noqa: S102 - of our own page
    role = {"engine": names["engine"], "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
    (container,) = compile_serving(in_role(role)).plan.roles[0].entry["spec"]["containers"]
    shown = " ".join(block("docs/engines.md", "mpirun ").replace("\\\n", " ").split())
    assert container["command"][-1].endswith(f"exec {shown}")


def test_the_program_in_yaml_is_the_example() -> None:
    example = yaml.safe_load((ROOT / "examples/languages/yaml/Pulumi.yaml").read_text())
    shown = yaml.safe_load(block("docs/languages.md", "resources:"))
    assert shown == {name: example[name] for name in ("resources", "outputs")}


def test_the_program_in_typescript_is_the_example() -> None:
    example = (ROOT / "examples/languages/typescript/index.ts").read_text()
    assert block("docs/languages.md", "// Serve one model") == example


def test_the_action_has_the_inputs_of_its_page() -> None:
    (step,) = yaml.safe_load(block("docs/review.md", "- uses: "))
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert {*step["with"]} <= {*action["inputs"]}


def test_kaitos_count_is_that_of_its_page() -> None:
    wrong = changed(LLAMA, {"roles[0].engine.parallelism": {"tensor": 4}})
    with pytest.raises(SpecError) as refused:
        compile_serving(wrong)
    assert f"{refused.value.findings[0]}\n" == block("docs/backends/kaito.md", "roles[0].engine")


def checked(capsys: pytest.CaptureFixture[str], path: Path, text: str, *options: str) -> str:
    path.write_text(text)
    main(["check", *options, path.name])
    return capsys.readouterr().out


def test_check_prints_the_lines_of_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = checked(capsys, tmp_path / "service.yaml", f"{RUNTIME}---{SERVICE}")
    assert block("docs/check.md", "service.yaml:20: ") in printed
    assert block("docs/limits.md", "job.yaml:4: ") in checked(capsys, tmp_path / "job.yaml", JOB)
    found = json.loads(checked(capsys, tmp_path / "pod.yaml", WITH_RAY, "--format", "json"))
    (finding,) = (each for each in found if each["rule"] == "executor-stated")
    shown = json.loads("{" + block("docs/check.md", '"remedy": ') + "}")
    in_a_pod = json.loads(json.dumps(shown).replace("spec.template.spec", "spec"))
    assert in_a_pod == {name: finding[name] for name in ("remedy", "fixes")}
