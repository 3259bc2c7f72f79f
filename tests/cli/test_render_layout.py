"""What is read of a repository with Kustomize and Helm where neither program is there."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command, Write
from tests.support.manifests import RIGHT, WRONG, pod

pytestmark = pytest.mark.on_path()
PATCH = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: llama}
spec: {template: {spec: {nodeSelector: {gpu: h100}}}}
"""
TEMPLATE = "kind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n  {{- if .x }}\n  a: 1\n"


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
@pytest.mark.parametrize(
    "stated",
    [
        "patches: [{path: part.yaml}]",
        "patches: [{path: ./part.yaml, target: {kind: StatefulSet}}]",
        "patchesStrategicMerge: [part.yaml]",
        "patchesJson6902: [{path: part.yaml, target: {kind: StatefulSet, name: llama}}]",
        "replacements: [{path: part.yaml}]",
        "transformers: [part.yaml]",
        "configMapGenerator: [{name: x, files: [key=part.yaml]}]",
        "Patches: [{Path: part.yaml}]",
    ],
)
def test_a_file_that_a_kustomization_names_as_a_part_is_no_object(
    run: Command, write: Write, name: str, stated: str
) -> None:
    write("m/base.yaml", RIGHT)
    write("m/part.yaml", PATCH)
    alone = run("m")
    write(f"m/{name}", f"kind: Kustomization\nresources: [base.yaml]\n{stated}\n")
    done = run("m")
    assert "part.yaml" not in done.out
    assert "1 object checked" in done.lines[-1]
    assert alone.status == 1 or "2 objects checked" in alone.lines[-1]


def test_what_is_not_rendered_is_told_in_a_line_and_fails_nothing(
    run: Command, write: Write
) -> None:
    write("m/base/kustomization.yaml", "resources: [pod.yaml]")
    write("m/base/pod.yaml", RIGHT)
    for name in ("dev", "prod"):
        write(f"m/overlays/{name}/kustomization.yaml", "resources: [../../base]")
    write("m/charts/chat/Chart.yaml", "apiVersion: v2\nname: chat\nversion: 1.0.0\n")
    write("m/charts/chat/templates/deployment.yaml", TEMPLATE)
    write("m/charts/chat/crds/crd.yaml", "a: [")
    done = run("m")
    program = "not rendered: there is no kustomize or kubectl on PATH"
    assert done.err.splitlines() == [
        f"m/overlays/dev: {program}",
        f"m/overlays/prod: {program}",
        "m/charts/chat: not rendered: there is no helm on PATH",
    ]
    assert done.lines[-1].startswith("1 object checked in 5 files: ")
    assert done.lines[-1].endswith(", 3 not rendered")
    assert done.status == 0
    assert run("m", "--no-render").err.count("not rendered: --no-render was given") == 3
    assert run("m", "--no-render").status == 0
    assert run("m", "--strict-read").status == 2
    assert run("m", "--render").status == 2


def test_objects_that_are_not_rendered_are_checked_as_they_are(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", "resources: [wrong.yaml]")
    write("m/wrong.yaml", WRONG)
    done = run("m")
    assert done.lines[0].startswith("m/wrong.yaml:16: mandatory")
    assert done.status == 1


def test_what_a_walk_cannot_read_is_told_and_fails_nothing(run: Command, write: Write) -> None:
    write("m/a.yaml", RIGHT)
    write("m/broken.yaml", "a: [")
    done = run("m")
    assert done.err.startswith("m/broken.yaml:2:1: is not valid YAML")
    assert done.lines[-1].endswith(", 1 file not read")
    assert done.status == 0
    assert run("m", "--strict-read").status == 2
    assert run("m", "--strict-read").lines[-1].endswith(", 1 unreadable")
    assert run("m/a.yaml", "m/broken.yaml").status == 2
    write("m/wrong.yaml", WRONG)
    assert run("m").status == 1


def test_what_the_user_named_must_be_there(run: Command, write: Write) -> None:
    Path("empty").mkdir()
    assert run("empty").status == 2
    assert run("gone").status == 2
    write("m/a.yaml", RIGHT)
    assert run("m", "gone").status == 2


@pytest.mark.parametrize("inside", ["templates", "templates/sub", "charts/inner/templates", "crds"])
def test_templates_of_charts_are_never_read(run: Command, write: Write, inside: str) -> None:
    write("m/chart/Chart.yaml", "apiVersion: v2\nname: chat\nversion: 1.0.0\n")
    write("m/chart/charts/inner/Chart.yaml", "apiVersion: v2\nname: inner\nversion: 1.0.0\n")
    write(f"m/chart/{inside}/x.yaml", TEMPLATE)
    write(f"m/chart/{inside}/y.yaml", WRONG)
    done = run("m")
    assert done.err == "m/chart: not rendered: there is no helm on PATH\n"
    assert done.lines[-1].startswith("0 objects checked in ")
    assert done.status == 0
    # The file itself is read where somebody names it.
    assert run(f"m/chart/{inside}/y.yaml").status == 1


def test_a_folder_of_templates_is_known_by_the_chart_around_it(run: Command, write: Write) -> None:
    write("m/.git/HEAD", "")
    write("m/chart/Chart.yaml", "apiVersion: v2\nname: chat\nversion: 1.0.0\n")
    write("m/chart/templates/x.yaml", TEMPLATE)
    done = run("m/chart/templates")
    assert done.err == "m/chart: not rendered: there is no helm on PATH\n"
    assert done.status == 0
    write("m/overlay/kustomization.yaml", "patches: [{path: patches/one.yaml}]")
    write("m/overlay/patches/one.yaml", PATCH)
    assert run("m/overlay/patches").lines[-1].startswith("0 objects checked")


def test_a_library_chart_holds_nothing_to_render(run: Command, write: Write) -> None:
    write("m/Chart.yaml", "apiVersion: v2\nname: common\nversion: 1.0.0\ntype: library\n")
    write("m/templates/x.yaml", TEMPLATE)
    done = run("m")
    assert (done.status, done.err) == (0, "")


def test_a_component_alone_is_not_built(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", "kind: Component\nresources: [a.yaml]\npatches: [{path: p.yaml}]")
    write("m/a.yaml", RIGHT)
    write("m/p.yaml", PATCH)
    done, file = run("m"), "m/kustomization.yaml"
    assert done.err.splitlines() == [
        "m: not rendered: there is no kustomize or kubectl on PATH",
        f"m/p.yaml: is not checked: it is a patch or a part of {file}, which is not rendered",
    ]
    assert done.lines[-1].startswith("1 object checked")
    assert done.lines[-1].endswith(", 1 file not read, 1 not rendered")


def test_a_kustomization_that_is_no_map_is_told(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", "- a\n")
    write("m/a.yaml", RIGHT)
    done = run("m")
    assert done.err.startswith("m/kustomization.yaml: contains no map of settings")
    assert done.status == 0
    assert run("m", "--strict-read").status == 2


def test_objects_of_flux_are_no_kustomizations(run: Command, write: Write) -> None:
    text = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: x}\n"
    write("m/kustomization.yaml", text)
    write("m/a.yaml", RIGHT)
    done = run("m")
    assert (done.status, done.err) == (0, "")


PARTS = {
    "a patch": PATCH,
    "a patch of a container": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec: {template: {spec: {containers: [{name: engine, args: [serve, m, -tp, "8"]}]}}}
""",
    "a part of a Pod": """\
apiVersion: v1
kind: Pod
metadata: {name: driver}
spec: {nodeSelector: {gpu: h100}}
""",
    "a part of a LeaderWorkerSet": """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat}
spec: {leaderWorkerTemplate: {workerTemplate: {spec: {nodeSelector: {gpu: h100}}}}}
""",
    "a base that a patch completes": """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec: {containers: [{name: chat, image: {}}]}
""",
    "an order to Kustomize": """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec: {containers: [{name: chat, image: chat:1, $patch: replace}]}
""",
    "a scaffold": """\
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: chat}
spec:
  # TODO(user): Add fields here
""",
    "an expectation of a test": """\
apiVersion: v1
kind: Pod
metadata: {name: chat, $strict: false}
spec: {containers: [{name: chat, image: chat:1}]}
""",
}


@pytest.mark.parametrize("text", PARTS.values(), ids=PARTS)
def test_a_part_of_an_object_that_nobody_names_is_not_checked(
    run: Command, write: Write, text: str
) -> None:
    write("m/part.yaml", text)
    done = run("m")
    assert done.status == 0
    (told,) = done.lines[:-1]
    assert ": not checked: " in told
    assert "because it looks like a patch or a part of a template: " in told
    assert told.endswith(" [partial-object]")
    # Where somebody names it, it is checked as an object.
    assert "[partial-object]" not in run("m/part.yaml").out


def test_a_field_that_a_template_leaves_empty_is_not_checked(run: Command, write: Write) -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: load}
spec:
  containers: [{name: load, image: "load:1"}]
  volumes: [{name: model, persistentVolumeClaim: {claimName: }}]
"""
    write("m/load-template.yaml", text)
    done = run("m")
    assert "spec.volumes[0].persistentVolumeClaim.claimName: is empty in a template" in done.out
    assert done.status == 0
    # Where somebody names it, and under another name, it is checked as an object.
    assert "claimName: is missing" in run("m/load-template.yaml").out
    write("n/load.yaml", text)
    assert "claimName: is missing" in run("n").out


def test_a_spec_whose_fields_are_not_indented_is_no_part(run: Command, write: Write) -> None:
    start, _, fields = PARTS["a scaffold"].partition("spec:\n")
    write("m/a.yaml", f"{start}spec:\nroles: []\n{fields}")
    assert run("m").status == 1
    assert "[partial-object]" not in run("m").out


def test_a_whole_object_with_a_mistake_is_no_part(run: Command, write: Write) -> None:
    write("m/a.yaml", pod("wrong"))
    assert run("m").status == 1
    selector = "selector: {matchLabels: {a: b}}, template"
    write("m/a.yaml", PARTS["a patch of a container"].replace("template", selector))
    assert "[partial-object]" not in run("m").out
    write("m/a.yaml", PATCH.replace("nodeSelector: {gpu: h100}", 'containers: "${CONTAINERS}"'))
    assert "[partial-object]" not in run("m").out


def test_a_folder_that_is_one_is_named_by_its_file(run: Command, write: Write) -> None:
    write("kustomization.yaml", "resources: [https://example.com/x]")
    write("Chart.yaml", "apiVersion: v2\nname: chat\nversion: 1.0.0\n")
    program = "not rendered: there is no"
    assert run(".").err.splitlines() == [
        f"kustomization.yaml: {program} kustomize or kubectl on PATH",
        f"Chart.yaml: {program} helm on PATH",
    ]


def test_a_kustomization_that_is_not_understood_is_told_once(run: Command, write: Write) -> None:
    write("m/base/kustomization.yaml", "a: [")
    for name in ("dev", "prod"):
        write(f"m/{name}/kustomization.yaml", "resources: [../base]")
    done = run("m", "--no-render")
    assert sum(line.startswith("m/base/") for line in done.err.splitlines()) == 1
    assert done.status == 0


def test_a_template_of_several_documents_is_told_once(run: Command, write: Write) -> None:
    write("m/a.yaml", "---\n".join([TEMPLATE] * 3))
    assert run("m").err.count("is a template") == 1


def test_what_serves_no_model_is_checked_as_it_is(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", "resources: [web.yaml]")
    write("m/web.yaml", PATCH.replace("nodeSelector: {gpu: h100}", "containers: 3"))
    done = run("m")
    assert (done.status, done.err) == (1, "")
    assert "containers: is 3, but must be a list" in done.out
