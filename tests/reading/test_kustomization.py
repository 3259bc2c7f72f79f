"""What a kustomization names, and what of it must not be built."""

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from kthena_components.reading.files import Unreadable
from kthena_components.reading.kustomization import Kustomization, patches_of, read_kustomization
from tests.support.for_each import for_each

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def file(name: str, text: str = "a: 1\n") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return file


def read(file: str = "m/kustomization.yaml") -> Kustomization:
    made = read_kustomization(file, os.path.realpath("."))
    assert isinstance(made, Kustomization)
    return made


def test_what_it_builds_on_and_its_parts_are_told_apart(write: Write) -> None:
    write("base/kustomization.yaml")
    write("m/one.yaml")
    write("m/component/kustomization.yaml")
    write(
        "m/kustomization.yaml",
        """
resources: [one.yaml, ../base]
components: [./component]
crds: [crd.json]
patches: [{path: a.yaml}, {patch: "- op: remove\\n  path: /a"}]
patchesStrategicMerge: [b.yaml, "a:\\n  b: 1"]
replacements: [{path: c.yaml}, {source: {kind: Service}}]
configMapGenerator: [{name: x, files: [d.yaml, key=e.yaml], envs: [f.env], literals: [a=b]}]
openapi: {path: schema.json}
""",
    )
    made = read()
    assert made.problem == ""
    assert made.objects == ["m/one.yaml"]
    assert made.bases == ["base", "m/component"]
    names = ["crd.json", "a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml", "f.env", "schema.json"]
    assert sorted(made.parts) == sorted(f"m/{name}" for name in [*names])


BINARY = b64encode(b"http://127.0.0.1:1/x").decode()
FETCHED = {
    "a resource": "resources: [https://example.com/x.yaml]",
    "a key in capitals": "RESOURCES: [https://example.com/x.yaml]",
    "a key that Go folds": "re\u017fources: [https://example.com/x.yaml]",
    "a scheme in capitals": "resources: [HTTPS://example.com/x.yaml]",
    "a name in quotes": 'resources: ["http\\x3a\\x2f\\x2fexample.com/x.yaml"]',
    "a repository": "resources: [github.com/org/repo//base?ref=v1]",
    "a repository by git": "resources: ['git@github.com:org/repo.git']",
    "a repository elsewhere": "resources: [git.example.com/org/repo.git?ref=v1]",
    "a protocol of git": "resources: ['git::https://example.com/repo']",
    "a base": "bases: [https://example.com/x]",
    "a component": "components: [https://example.com/x]",
    "a patch": "patches: [{path: http://127.0.0.1:1/x}]",
    "a patch of old": "patchesStrategicMerge: [http://127.0.0.1:1/x]",
    "a JSON patch": "patchesJson6902: [{path: http://127.0.0.1:1/x}]",
    "a replacement": "replacements: [{path: http://127.0.0.1:1/x}]",
    "a file of a ConfigMap": "configMapGenerator: [{name: x, files: [http://127.0.0.1:1/x]}]",
    "a file by a key": "configMapGenerator: [{name: x, files: ['k=http://127.0.0.1:1/x']}]",
    "an address with a sign": "configMapGenerator: [{name: x, files: ['http://127.0.0.1/?a=b']}]",
    "an env file of a Secret": "secretGenerator: [{name: x, envs: [http://127.0.0.1:1/x]}]",
    "an old env file": "secretGenerator: [{name: x, env: http://127.0.0.1:1/x}]",
    "definitions": "crds: [http://127.0.0.1:1/x]",
    "settings": "configurations: [http://127.0.0.1:1/x]",
    "a schema": "openapi: {path: http://127.0.0.1:1/x}",
    "a transformer": "transformers: [http://127.0.0.1:1/x]",
    "a transformer in line": (
        "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n"
        '  metadata: {name: x}\n  path: "http:\\x2f\\x2f127.0.0.1/x"\n'
    ),
    "a transformer in one line": (
        "transformers: ['{apiVersion: builtin, kind: PatchTransformer, path: \"http://a/x\"}']"
    ),
    "a transformer with a merge key": (
        "transformers:\n- |\n  kind: PatchTransformer\n  path: a.yaml\n  <<: {path: 'http:x'}\n"
    ),
    "a patch of version 1": "patches: [http://127.0.0.1:1/x]",
    "a key in two spellings": "resources: [http://127.0.0.1:1/x]\nRESOURCES: [one.yaml]",
    "a part in two spellings": "openapi: {path: http://127.0.0.1:1/x, PATH: one.yaml}",
    "a generator's file": "generators: [plugin.yaml]",
    "a generator with a tag": "generators: [tagged.yaml]",
    "a plugin that cannot be read": "generators: [broken.yaml]",
}


@pytest.mark.parametrize("text", FETCHED.values(), ids=FETCHED)
def test_what_may_be_fetched_is_not_built(write: Write, text: str) -> None:
    write("m/plugin.yaml", "files: [https://example.com]\n")
    write("m/broken.yaml", "a: [")
    write("m/tagged.yaml", f"files: [!!binary {BINARY}]\n")
    write("m/one.yaml")
    write("m/kustomization.yaml", text)
    assert read().problem.startswith(("remote base ", "remote file ", "the plugin "))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("resources: [gone.yaml]", "it builds on gone.yaml, which is not here"),
        ("resources: [../..]", "it builds on ../.., which leads out of "),
        ("resources: [/etc]", "it builds on /etc, which leads out of "),
        ("resources: [out]", "it builds on out, which leads out of "),
        ("resources: [../.git/x.yaml]", "it builds on ../.git/x.yaml, which is data of git"),
        ("resources: [token.yaml]", "it builds on token.yaml, which is data of git"),
        *(
            (text, "it reads token.yaml, which is data of git")
            for text in (
                "configMapGenerator: [{name: a, files: [k=token.yaml]}]",
                "secretGenerator: [{name: a, envs: [token.yaml]}]",
                "patches: [{path: token.yaml}]",
                "replacements: [{path: token.yaml}]",
                "openapi: {path: token.yaml}",
            )
        ),
        ("helmCharts: [{name: x}]", "it takes in a Helm chart (helmCharts)"),
        ("generators: [plugins]", "the plugin plugins is a folder"),
        (f"resources: [!!binary {BINARY}]", "it has YAML tags or merge keys"),
        ("<<: {resources: [http://a/x]}\nresources: [a.yaml]", "it has YAML tags or merge keys"),
        ('resources: ["a\\0b"]', "it names a path that cannot be read: embedded null byte"),
        (f"resources: [{'x' * 5000}]", "it names a path that cannot be read: File name too long"),
    ],
)
def test_what_is_not_here_is_not_built(write: Write, text: str, told: str) -> None:
    write("m/a.yaml")
    write("m/plugins/kustomization.yaml")
    write("m/kustomization.yaml", text)
    write(".git/x.yaml")
    Path("m/token.yaml").symlink_to("../.git/x.yaml")
    Path("m/out").symlink_to("/etc")
    assert read().problem.startswith(told)


def test_a_folder_with_two_kustomizations_is_not_built(write: Write) -> None:
    write("m/kustomization.yaml", "resources: []")
    Path("m/Kustomization").symlink_to("/nowhere")
    assert read().problem == "its folder has both kustomization.yaml and Kustomization"


def test_paths_start_at_the_real_folder_as_those_of_kustomize_do(write: Write) -> None:
    write("elsewhere/real/kustomization.yaml", "resources: [../base]")
    write("elsewhere/base/kustomization.yaml")
    write("m/base/kustomization.yaml")
    Path("m/link").symlink_to("../elsewhere/real")
    assert read("m/link/kustomization.yaml").bases == [os.path.realpath("elsewhere/base")]


def test_addresses_that_nothing_fetches_are_no_reason(write: Write) -> None:
    write("m/a.yaml")
    write(
        "m/kustomization.yaml",
        """
resources: [a.yaml]
commonAnnotations: {docs: https://example.com}
images: [{name: x, newName: https://example.com/x}]
configMapGenerator: [{name: x, literals: [url=https://example.com]}]
patches: [{patch: '[{"op": "add", "path": "/a", "value": "https://example.com"}]'}]
transformers: ["apiVersion: builtin\\nkind: LabelTransformer\\nlabels: {a: b}\\n"]
""",
    )
    assert read().problem == ""


@pytest.mark.parametrize("text", ["a: [", "- a", "resources: []\nresources: []", "a: 1\n---\nb: 2"])
def test_what_is_not_understood_is_not_built(write: Write, text: str) -> None:
    write("m/kustomization.yaml", text)
    assert isinstance(read_kustomization("m/kustomization.yaml", os.path.realpath(".")), Unreadable)


@pytest.mark.parametrize(
    "text",
    [
        "resources: 3",
        "resources: {a: b}",
        "resources: [null, 3, [a], '']",
        "patches: [3, {path: 3}]",
        "configMapGenerator: [{files: 3}]",
        "openapi: 3",
        "3: 4\nnull: 5",
        'transformers: ["\\n"]',
    ],
)
def test_odd_kustomizations_are_read_all_the_same(write: Write, text: str) -> None:
    write("m/kustomization.yaml", text)
    made = read()
    assert (made.objects, made.bases, made.parts) == ([], [], [])


IN_METADATA = {"metadata": {"labels": {"a": "b"}}}
IN_TEMPLATES = {"spec": {"template": IN_METADATA}}
IN_SELECTORS = {"spec": {"selector": {"matchLabels": {"a": "b"}}}}
OF_SERVICES = {"spec": {"selector": {"a": "b"}}}
IN_ALL = [IN_METADATA, IN_TEMPLATES, IN_SELECTORS, OF_SERVICES]
NOTES = {"metadata": {"annotations": {"a": "b"}}}
PAIRS = "pairs: {a: b}"
MARKS: dict[str, list[object]] = {
    "commonLabels: {a: b}": IN_ALL,
    f"labels: [{{{PAIRS}}}]": [IN_METADATA],
    f"labels: [{{{PAIRS}, includeTemplates: true}}]": [IN_METADATA, IN_TEMPLATES],
    f"labels: [{{{PAIRS}, includeTemplates: false}}]": [IN_METADATA],
    f"labels: [{{{PAIRS}, includeSelectors: true}}]": IN_ALL,
    f"labels: [{{{PAIRS}, fields: [{{path: spec/x}}, {{}}]}}]": [
        IN_METADATA,
        {"spec": {"x": {"a": "b"}}},
    ],
    "commonAnnotations: {a: b}": [NOTES, {"spec": {"template": NOTES}}],
    "commonLabels: {}\ncommonAnnotations:\nlabels: [{pairs: {}, includeSelectors: true}]": [],
}
"""What labels and annotations change: sigs.k8s.io/kustomize/api v0.20
internal/konfig/builtinpluginconsts (commonlabels.go, commonannotations.go, metadatalabels.go)."""


@for_each("fields", MARKS)
def test_marks_are_changes_of_objects_templates_and_selectors(write: Write, fields: str) -> None:
    write("m/kustomization.yaml", f"{fields}\n")
    assert [patch.change for patch in patches_of(read())] == MARKS[fields]


def may_change(version: str, kind: str) -> list[bool]:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    return [patch.may_change(body) for patch in patches_of(read())]


KINDS = {
    ("v1", "Service"): [True, False, False, True],
    ("batch/v1", "Job"): [True, True, False, False],
    ("apps/v1", "Deployment"): [True, True, True, False],
    ("apps/v1", "StatefulSet"): [True, True, True, False],
    ("policy/v1", "PodDisruptionBudget"): [True, False, True, False],
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): [True, False, False, False],
}
"""Kinds, and whether labels change their metadata, their template, their matchLabels and their
selector without matchLabels."""


@for_each("kind", KINDS)
def test_kustomize_knows_where_kinds_of_kubernetes_have_labels(
    write: Write, kind: tuple[str, str]
) -> None:
    write("m/kustomization.yaml", "commonLabels: {a: b}\n")
    assert may_change(*kind) == KINDS[kind]


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("{path: x, kind: Deployment}", True),
        ("{path: x, kind: Job}", False),
        ("{path: x, group: apps}", True),
        ("{path: x, group: batch}", False),
        ("{path: x, version: v1}", True),
        ("{path: x, version: v2}", False),
    ],
)
def test_labels_at_a_field_change_objects_of_its_kind(
    write: Write, field: str, changes: bool
) -> None:
    write("m/kustomization.yaml", f"labels: [{{pairs: {{a: b}}, fields: [{field}]}}]\n")
    assert may_change("apps/v1", "Deployment") == [True, changes]
