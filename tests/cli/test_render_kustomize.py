"""Kustomizations are built by the real Kustomize, and what they build is judged."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Server, Write
from tests.support.manifests import FOUND, deployment

pytestmark = [pytest.mark.programs, pytest.mark.on_path("kustomize")]

BASE = f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: other}}
---
{deployment(gpus=4)}"""
LINE = 16
"""Where the arguments stand."""
GPUS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec: {template: {spec: {containers: [{name: engine, resources: {limits: {nvidia.com/gpu: "8"}}}]}}}
"""


@pytest.fixture
def base(write: Write) -> None:
    write("m/base/kustomization.yaml", "resources: [chat.yaml]")
    write("m/base/chat.yaml", BASE)


def overlay(write: Write, name: str, more: str = "") -> None:
    write(f"m/overlays/{name}/kustomization.yaml", f"resources: [../../base]\n{more}")


def mandatory(run: Command, *arguments: str) -> list[str]:
    return [line for line in run(*arguments).lines if ": mandatory: " in line]


@pytest.mark.usefixtures("base")
def test_an_overlay_is_checked_as_it_is_built(run: Command, write: Write) -> None:
    overlay(write, "prod", "patches: [{path: gpus.yaml}]")
    write("m/overlays/prod/gpus.yaml", GPUS)
    done = run("m")
    assert (done.status, done.err) == (0, "")
    assert done.lines[-1].startswith("1 object checked in 2 files and 1 rendering (1 more")
    # By itself the base is wrong, and so is an overlay that mends nothing.
    assert run("m/base").status == 1
    overlay(write, "dev")
    (line,) = mandatory(run, "m")
    assert line.startswith(
        f"m/base/chat.yaml:{LINE}: mandatory: Deployment chat as rendered by m/overlays/dev: "
        "spec.template.spec.containers[0].args: engine 'chat' "
    )
    assert FOUND in line


@pytest.mark.usefixtures("base")
def test_what_several_overlays_have_of_one_base_is_told_once(run: Command, write: Write) -> None:
    for name in ("a", "b", "c"):
        overlay(write, name, f"namePrefix: {name}-\nnameSuffix: -{name}\nnamespace: {name}")
    (line,) = mandatory(run, "m")
    assert line.startswith(
        f"m/base/chat.yaml:{LINE}: mandatory: Deployment a/a-chat-a as rendered by m/overlays/a, "
        "m/overlays/b and 1 more: spec.template.spec.containers[0].args: engine 'a-chat-a' "
    )
    (row,) = (r for r in json.loads(run("m", "--format", "json").out) if r["level"] == "mandatory")
    assert row["rendered_by"] == ["m/overlays/a", "m/overlays/b", "m/overlays/c"]
    assert run("m").lines[-1].count("1 mandatory") == 1


@pytest.mark.usefixtures("base")
def test_an_overlay_that_cannot_be_built_leaves_its_base_to_itself(
    run: Command, write: Write
) -> None:
    overlay(write, "prod", "patches: [{path: gone.yaml, target: {kind: Service}}]")
    done = run("m")
    (told,) = done.err.splitlines()
    assert told.startswith("m/overlays/prod: not rendered: ")
    assert "gone.yaml" in told
    assert str(Path.cwd()) not in told
    (line,) = mandatory(run, "m")
    assert "as rendered by m/base: " in line
    assert done.status == 1
    assert run("m", "--strict-read").status == 2


@pytest.mark.usefixtures("base")
def test_components_and_generated_objects_are_built_in(run: Command, write: Write) -> None:
    write("m/gpus/kustomization.yaml", "kind: Component\npatches: [{path: gpus.yaml}]")
    write("m/gpus/gpus.yaml", GPUS)
    write("m/overlays/prod/kustomization.yaml", (
        "resources: [../../base, pod.yaml]\ncomponents: [../../gpus]\n"
        "secretGenerator: [{name: hf, literals: [a=b]}]\n"
    ))  # fmt: skip
    taken = "{name: T, valueFrom: {secretKeyRef: {name: hf, key: token}}}"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
    write("m/overlays/prod/pod.yaml", f"{pod}    - name: a\n      image: i\n      env: [{taken}]\n")
    (line,) = mandatory(run, "m")
    assert line.startswith(
        "m/overlays/prod/pod.yaml:8: mandatory: Pod p as rendered by m/overlays/prod: "
        "spec.containers[0].env[0].valueFrom.secretKeyRef.key: is 'token', but the Secret 'hf-"
    )
    assert run("m").err == ""


def test_a_component_that_nobody_uses_and_a_circle_are_told(run: Command, write: Write) -> None:
    write("m/component/kustomization.yaml", "kind: Component\nresources: [a.yaml]")
    write("m/component/a.yaml", BASE)
    write("m/one/kustomization.yaml", "resources: [../two, a.yaml]")
    write("m/one/a.yaml", BASE)
    write("m/two/kustomization.yaml", "resources: [../one]")
    done = run("m")
    why = "not rendered: no kustomization that can be built builds on it"
    assert done.err.splitlines() == [f"m/{name}: {why}" for name in ("component", "one", "two")]
    places = [line.split(" ")[0] for line in mandatory(run, "m")]
    assert places == [f"m/{name}/a.yaml:{LINE}:" for name in ("component", "one")]


@pytest.mark.usefixtures("base")
def test_all_is_one_cluster_where_it_is_said_to_be(run: Command, write: Write) -> None:
    overlay(write, "prod")
    write("m/chat.yaml", BASE)
    assert "[object-twice]" not in run("m").out
    told = [line for line in run("m", "--whole").lines if line.endswith("[object-twice]")]
    assert [line.split(": ")[0] for line in told] == ["m/base/chat.yaml:7"]
    assert "which is also the Deployment in namespace 'default' of m/chat.yaml:5, and" in told[0]


@pytest.mark.usefixtures("base")
def test_nothing_is_written_into_the_checkout(run: Command, write: Write, tmp_path: Path) -> None:
    overlay(write, "prod")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert run("m").status == 1
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_base_may_lie_elsewhere_in_the_checkout_and_nowhere_else(
    run: Command, write: Write
) -> None:
    write("repo/base/kustomization.yaml", "resources: [chat.yaml]")
    write("repo/base/chat.yaml", BASE)
    write("repo/overlays/prod/kustomization.yaml", "resources: [../../base]")
    done = run("repo/overlays/prod")
    assert done.err.startswith("repo/overlays/prod: not rendered: it builds on ../../base, which ")
    Path("repo/.git").mkdir()
    (line,) = mandatory(run, "repo/overlays/prod")
    assert line.startswith(f"repo/base/chat.yaml:{LINE}: mandatory: ")


@pytest.mark.parametrize(
    "text",
    [
        "resources: [URL]",
        "RESOURCES: [URL]",
        "resources: [a.yaml]\npatches: [{path: URL}]",
        "resources: [a.yaml]\ntransformers: [plugin.yaml]",
        "configMapGenerator: [{name: x, files: [a=URL]}]",
        "resources: [../other]",
    ],
)
def test_nothing_is_fetched(run: Command, write: Write, server: Server, text: str) -> None:
    url = f"http://127.0.0.1:{server.server_port}/x.yaml"
    write("m/a.yaml", BASE)
    plugin = 'apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: "{}"\n'
    write("m/plugin.yaml", plugin.replace("{}", url.replace("/", "\\x2f")))
    write("other/kustomization.yaml", f"resources: [{url}]")
    write("m/kustomization.yaml", text.replace("URL", url))
    Path(".git").mkdir()
    assert "m: not rendered: " in run("m").err
    assert server.asked == 0


UNSURE = {
    "a base with a tag": {"b/kustomization.yaml": "resources: !x [URL]"},
    "a base of two documents": {"b/kustomization.yaml": "resources: [URL]\n---\na: 1\n"},
    "a base with a key twice": {
        "b/kustomization.yaml": "namespace: a\nnamespace: b\nresources: [URL]"
    },
    "a base with a merge key": {
        "b/kustomization.yaml": "resources: [../a.yaml]\n<<: {resources: [URL]}"
    },
    "a folder of plugins": {
        "b/kustomization.yaml": "generators: [plugins]",
        "b/plugins/kustomization.yaml": "resources: [a.yaml]",
        "b/plugins/a.yaml": (
            "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\nfiles: ['k=URL']\n"
        ),
    },
    "a second kustomization": {
        "o/a.yaml": "a: 1\n",
        "b/kustomization.yaml": "-> ../o/a.yaml",
        "b/kustomization.yml": "resources: [URL]",
    },
    "a linked base": {
        "b": "-> ../o/real",
        "o/real/kustomization.yaml": "resources: [../far]",
        "o/far/kustomization.yaml": "resources: [URL]",
        "m/far/kustomization.yaml": "resources: []",
    },
}


@pytest.mark.parametrize("files", UNSURE.values(), ids=UNSURE)
def test_nothing_is_fetched_by_what_programs_read_differently(
    run: Command, write: Write, server: Server, files: dict[str, str]
) -> None:
    write("m/kustomization.yaml", "resources: [../b, a.yaml]")
    write("m/a.yaml", BASE)
    for name, text in files.items():
        if text.startswith("-> "):
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).symlink_to(text.removeprefix("-> "))
        else:
            write(name, text.replace("URL", f"http://127.0.0.1:{server.server_port}/x.yaml"))
    assert "m: not rendered: " in run(".").err
    assert server.asked == 0


@pytest.mark.usefixtures("base")
def test_a_file_that_is_named_as_the_origin_from_outside_is_not_opened(
    run: Command, write: Write
) -> None:
    write("secret.yaml", BASE)
    # What is built by a kustomization has its origin written over by Kustomize.
    text = BASE.replace("  name: chat\n", (
        "  name: chat\n  annotations:\n    config.kubernetes.io/origin: |\n"
        "      path: ../secret.yaml\n"
    ))  # fmt: skip
    write("m/base/chat.yaml", text)
    (line,) = mandatory(run, "m")
    assert line.startswith("m/base/chat.yaml:")


def test_kubectl_builds_as_well(
    run: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = shutil.which("kubectl", path=os.defpath)
    if kubectl is None:
        pytest.skip(f"there is no kubectl in {os.defpath}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(os.path.realpath(kubectl))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    write("m/kustomization.yaml", "resources: [chat.yaml]")
    write("m/chat.yaml", BASE)
    (line,) = mandatory(run, "m")
    assert line.startswith(f"m/chat.yaml:{LINE}: mandatory: Deployment chat as rendered by m: ")


def test_an_object_that_no_overlay_keeps_is_told(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", "resources: [chat.yaml, gone.yaml]\npatches: [{path: p.yaml}]")
    write("m/chat.yaml", BASE)
    write("m/gone.yaml", BASE.replace("name: chat", "name: gone").replace("name: other", "name: x"))
    write(
        "m/p.yaml", "$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: gone}"
    )
    assert run("m").err == (
        "m/gone.yaml: is not checked: no kustomization that builds on it keeps the Deployment in "
        "it\n"
    )


def test_a_workload_that_becomes_a_text_is_told(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", (
        "resources: [chat.yaml]\nconfigMapGenerator: [{name: x, files: [bad.yaml]}]\n"
    ))  # fmt: skip
    write("m/chat.yaml", BASE)
    write("m/bad.yaml", BASE)
    assert run("m").err == (
        "m/bad.yaml: is not checked: it is a string of a ConfigMap or a Secret of "
        "m/kustomization.yaml\n"
    )


@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization"])
def test_a_kustomization_that_is_a_link_is_built(
    run: Command, write: Write, tmp_path: Path, name: str
) -> None:
    """Kustomize follows the link, and builds resources of any name."""
    write("k/what.txt", "resources: [chat.txt]\n")
    write("k/chat.txt", BASE)
    write("k/other.yaml", "a: 1\n")
    (tmp_path / "k" / name).symlink_to("what.txt")
    ran = run("k")
    assert "1 object checked" in ran.out
    assert "1 rendering" in ran.out


def test_a_kustomization_that_is_a_link_out_of_the_folder_is_told(
    run: Command, write: Write, tmp_path: Path
) -> None:
    write("what.txt", "resources: [chat.txt]\n")
    write("k/chat.txt", BASE)
    write("k/other.yaml", "a: 1\n")
    (tmp_path / "k/Kustomization").symlink_to(tmp_path / "what.txt")
    assert "k/Kustomization: leads out of " in run("k").err


WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.27", volumeMounts: [{name: data, mountPath: /data}]}]
"""
VOLUME = """\
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {volumes: [{name: data, emptyDir: {}}]}}}
"""
OTHER = "kind: Service\nmetadata: {name: web}\n"


@pytest.mark.parametrize(
    ("more", "patch", "level"),
    [
        ("", "", "mandatory"),
        ("patches: [{path: a.yaml}]", VOLUME, "not checked"),
        ("patchesStrategicMerge: [a.yaml]", VOLUME, "not checked"),
        ("patches: [{path: gone.yaml}]", "", "not checked"),
        ("patches: [{path: gone.yaml, target: {kind: Deployment}}]", "", "not checked"),
        ("patches: [{path: gone.yaml, target: {kind: Deploy.*}}]", "", "not checked"),
        ("patches: [{path: gone.yaml, target: {kind: Service}}]", "", "mandatory"),
        ("patches: [{path: a.yaml}]", OTHER, "mandatory"),
        ("components: [../part]", "", "not checked"),
    ],
)
def test_what_a_patch_may_mend_is_not_told_of_an_object_that_serves_no_model(
    run: Command, write: Write, more: str, patch: str, level: str
) -> None:
    """Kustomizations without a serving are not built."""
    write("m/web/kustomization.yaml", f"resources: [web.yaml]\n{more}")
    write("m/web/web.yaml", WEB)
    if patch:
        write("m/web/a.yaml", patch)
    if "components" in more:
        start = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        write("m/part/kustomization.yaml", f"{start}patches: [{{path: volume.yaml}}]")
        write("m/part/volume.yaml", VOLUME)
    (line,) = (line for line in run("m").lines if line.startswith("m/web/web.yaml:"))
    assert f": {level}: Deployment web: spec.template.spec.containers[0].volumeMounts[0].n" in line
    assert ("/kustomization.yaml, which was not built" in line) == (level == "not checked")
