"""What a kustomization names, and what of it must not be built."""

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from kthena_components.reading.files import Unreadable
from kthena_components.reading.kustomization import Kustomization, read_kustomization

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
