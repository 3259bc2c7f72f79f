"""Tables of custom resources' fields, made from a small repository with CRDs of two releases."""

import json
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.sources import is_checked
from kthena_components.core.schema.definitions import read_root
from toolchain.crd_tables import __main__ as command
from toolchain.crd_tables import openapi
from toolchain.crd_tables.published import crds_of
from toolchain.crd_tables.releases import Repository
from toolchain.crd_tables.sources import SOURCES, Source
from toolchain.crd_tables.tables import Table

SOURCE = Source(
    system="toys",
    title="Toys",
    repository="ann/toys",
    folders=("crds", "old"),
    files=("toys.example.com_cars",),
    first="0.2",
    filled={"Car": ("wheels",)},
)
CAR: dict[str, Any] = {
    "required": ["name", "size"],
    "properties": {
        "name": {"type": "string", "maxLength": 9, "description": "Anybody's words."},
        "size": {"type": "integer", "format": "int32", "default": 1, "minimum": 1},
    },
}


def crd(spec: dict[str, Any]) -> str:
    """Write a CRD with one version that is served and one that is not."""
    schema = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", **spec},
            "status": {"type": "object", "properties": {"driven": {"type": "integer"}}},
        },
    }
    versions: list[dict[str, Any]] = [
        {
            "name": name,
            "served": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}} | ({"scale": {}} if "colour" in str(spec) else {}),
        }
        for name in ("v1", "v1alpha1")
    ]
    names = {"kind": "Car", "plural": "cars"}
    return yaml.safe_dump(
        {"spec": {"group": "toys.example.com", "names": names, "versions": versions}}
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a repository with the tags v0.1.0, v0.2.0, v0.2.1, v0.3.0 and v0.4.0-alpha.1."""
    folder = tmp_path / "toys.git"

    def git(*words: str) -> None:
        known = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", *known, "-C", str(folder), *words], check=True, capture_output=True)

    folder.mkdir()
    git("init", "--quiet")
    more = {**CAR, "properties": {**CAR["properties"], "colour": {"type": "string"}}}
    for tag, place, spec in (
        ("v0.1.0", "old", {"properties": {}}),
        ("v0.2.0", "old", CAR),
        ("v0.2.1", "old", CAR),
        ("v0.3.0", "crds", more),
        ("v0.4.0-alpha.1", "crds", CAR),
    ):
        (folder / place).mkdir(exist_ok=True)
        (folder / place / "toys.example.com_cars.yaml").write_text(crd(spec))
        git("add", ".")
        git("commit", "--quiet", "--allow-empty", "-m", tag)
        git("tag", tag)
    return folder


def test_a_table_has_the_newest_patch_of_each_minor_release(clone: Path) -> None:
    table = json.loads(command.make(SOURCE, Repository(clone)).write())
    assert [release["version"] for release in table["releases"]] == ["0.2.1", "0.3.0"]
    assert [[*release["files"]] for release in table["releases"]] == [
        ["old/toys.example.com_cars.yaml"],
        ["crds/toys.example.com_cars.yaml"],
    ]
    assert table["filled"] == {"Car": ["wheels"]}
    (first, second) = table["kinds"]["Car"]["toys.example.com/v1"]
    assert (first[0], second[0]) == ("0.2.1", "0.3.0")
    assert [*table["kinds"]["Car"]] == ["toys.example.com/v1"]
    assert table["scaled"]["Car"]["toys.example.com/v1"] == [["0.2.1", False], ["0.3.0", True]]


def test_previews_stand_in_for_releases_that_are_not_out(clone: Path) -> None:
    found = Repository(clone).releases("0.2", previews=True)
    assert [release.version for release in found] == ["0.2.1", "0.3.0", "0.4.0-alpha.1"]


def test_only_names_types_and_limits_are_taken(clone: Path) -> None:
    table = json.loads(command.make(SOURCE, Repository(clone)).write())
    assert "Anybody" not in json.dumps(table)
    assert {"scalar": "string", "longest": 9} in table["types"]
    (spec,) = [
        made for made in table["types"] if {*made.get("fields", {})} == {"name", "size", "colour"}
    ]
    assert spec["required"] == ["name"]  # size has a default
    assert spec["fields"]["colour"] == "string"


def test_a_repository_is_cloned_and_its_table_written(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SOURCES", (SOURCE,))
    monkeypatch.setattr(command, "SYSTEMS", tmp_path)
    monkeypatch.setenv("KTHENA_COMPONENTS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "toys").mkdir()
    assert command.main(["--from", str(clone), "toys"]) == 0
    written = (tmp_path / "toys" / "crds.json").read_text()
    table = json.loads(written)
    assert table["title"] == "Toys"
    (read,) = crds_of(SOURCE, table["releases"][-1])  # kept for those who compare the table
    assert read["spec"]["names"]["kind"] == "Car"
    assert crds_of(SOURCE, {"version": "0.9.0", "files": {"a.yaml": "0" * 64}}) == []


def test_crds_that_have_moved_are_told(clone: Path) -> None:
    moved = replace(SOURCE, folders=("elsewhere",))
    with pytest.raises(ValueError, match="no release of Toys has its CRDs"):
        command.make(moved, Repository(clone))


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"type": "number"}, "number"),
        ({"type": "integer"}, "int64"),
        ({"type": "integer", "format": "int32"}, "int32"),
        ({"type": "integer", "maximum": 5}, {"scalar": "int64", "most": 5}),
        ({"type": "integer", "enum": [301, 302]}, {"scalar": "int64", "enum": [301, 302]}),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "uri"}, {"scalar": "string", "format": "uri"}),
        ({"type": "string", "format": "int32"}, "string"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            {"map": "string", "fewest": 1},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "maxProperties": 1},
            {"fields": {"a": "string"}, "most": 1},
        ),
        ({"type": "string", "enum": ["a"], "pattern": "^a$"}, {"enum": ["a"], "pattern": "^a$"}),
        ({"x-kubernetes-int-or-string": True}, "int-or-string"),
        ({"x-kubernetes-int-or-string": True, "pattern": "([KMGTPE]i)"}, "quantity"),
        ({"x-kubernetes-preserve-unknown-fields": True}, "any"),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"map": "string"}),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            {"list": "string", "set": True},
        ),
        (
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            {"keys": ["name"], "fewest": 1, "most": 4},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string", "nullable": True}},
                "required": ["a"],
                "x-kubernetes-preserve-unknown-fields": True,
            },
            {"fields": {"a": "string"}, "open": True},
        ),
    ],
)
def test_a_schema_is_read_as_a_type(schema: dict[str, Any], made: Any) -> None:
    table = Table("Toys", "ann/toys", {})
    root = read_root({"type": "object", "properties": {"it": schema}}, table._number)
    node = table.types[root]["fields"]["it"]
    found = table.types[node] if isinstance(node, int) else node
    if isinstance(made, str):
        assert found == made
    else:
        assert made.items() <= found.items()


DOCUMENT = {
    "definitions": {
        "io.k8s.api.apps.v1.StatefulSet": {
            "properties": {
                "metadata": {
                    "$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
                },
                "spec": {"$ref": "#/definitions/io.k8s.api.apps.v1.StatefulSetSpec"},
            },
            "x-kubernetes-group-version-kind": [
                {"group": "apps", "kind": "StatefulSet", "version": "v1"}
            ],
        },
        "io.k8s.api.apps.v1.StatefulSetSpec": {
            "required": ["template"],
            "properties": {
                "podManagementPolicy": {"type": "string", "description": "Anybody's words."},
                "replicas": {"type": "integer", "format": "int32"},
                "volumeClaimTemplates": {
                    "type": "array",
                    "items": {"$ref": "#/definitions/io.k8s.api.core.v1.PersistentVolumeClaimSpec"},
                },
                "template": {"$ref": "#/definitions/io.k8s.api.core.v1.PodTemplateSpec"},
                "amount": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
                "odd": {},
                "metadata": {
                    "$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
                },
            },
        },
        "io.k8s.api.core.v1.PersistentVolumeClaimSpec": {
            "properties": {"accessModes": {"type": "array", "items": {"type": "string"}}}
        },
    },
    "paths": {
        "/sets/{name}": {
            "get": {
                "responses": {
                    "200": {"schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.StatefulSet"}}
                }
            }
        },
        "/sets/{name}/scale": {},
    },
}


def test_the_document_of_kubernetes_is_read_as_a_table() -> None:
    table = json.loads(openapi.make([("1.37.2", json.dumps(DOCUMENT).encode())]).write())
    ((number,),) = [[found for _, found in table["kinds"]["StatefulSet"]["apps/v1"]]]
    types = table["types"]
    spec = types[types[number]["fields"]["spec"]]
    fields = {name: types[of] if isinstance(of, int) else of for name, of in spec["fields"].items()}
    template, claims = fields.pop("template"), fields.pop("volumeClaimTemplates")
    assert spec["required"] == ["template"]
    assert fields == {
        "amount": "quantity",
        "metadata": "metadata",
        "odd": "any",
        "podManagementPolicy": {"scalar": "string", "enum": ["", "OrderedReady", "Parallel"]},
        "replicas": {"scalar": "int32", "least": 0},
    }
    pod = types[template["fields"]["spec"]]
    container = types[types[pod["fields"]["containers"]]["list"]]
    assert (template["open"], pod["open"], container["open"]) == (True, True, True)
    assert container["required"] == ["image", "name"]
    modes = types[types[types[claims["list"]]["fields"]["accessModes"]]["list"]]
    assert "ReadWriteOnce" in modes["enum"]
    assert "" not in modes["enum"]
    assert table["scaled"]["StatefulSet"]["apps/v1"] == [["1.37.2", True]]
    assert table["nulls"]


@pytest.mark.skipif(shutil.which("go") is None, reason="the documents are in a module of Go")
def test_the_newest_patch_of_each_minor_release_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The modules are in a folder that the real `go` takes for a proxy."""
    versions = ("v1.28.9", "v1.36.9", "v1.36.10", "v1.37.0", "v1.38.0-beta.0")
    folder = tmp_path / "proxy" / openapi.MODULE / "@v"
    folder.mkdir(parents=True)
    (folder / "list").write_text("\n".join(versions))
    for version in versions:
        (folder / f"{version}.info").write_text(json.dumps({"Version": version}))
        (folder / f"{version}.mod").write_text(f"module {openapi.MODULE}\n")
        with zipfile.ZipFile(folder / f"{version}.zip", "w") as archive:
            archive.writestr(f"{openapi.MODULE}@{version}/{openapi.DOCUMENT}", version)
    monkeypatch.setenv("GOPROXY", (tmp_path / "proxy").as_uri())
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOFLAGS", "-modcacherw")
    monkeypatch.setenv("GONOSUMDB", "*")
    assert list(openapi._documents()) == [("1.36.10", b"v1.36.10"), ("1.37.0", b"v1.37.0")]


def test_the_kinds_of_kubernetes_have_their_table() -> None:
    table = json.loads(command.path_of(openapi.SYSTEM).read_text())
    assert {*table["kinds"]} == {kind for kinds in openapi.KINDS.values() for kind in kinds}
    heads = [(f"{group}/v1".removeprefix("/"), kind) for group in openapi.KINDS
             for kind in openapi.KINDS[group]]  # fmt: skip
    assert [head for head in heads if not is_checked(*head)] == []  # others are not parsed
    words = {tuple(made["enum"]) for made in table["types"] if "enum" in made}
    stated = {field for fields in openapi.WORDS.values() for field in fields.values()}
    of_required = {("Exact", "Prefix", "ImplementationSpecific")}
    in_lists = {("IPv4", "IPv6"), openapi.WORDS["core.v1.PersistentVolumeClaimSpec"]["accessModes"]}
    assert words == {("", *each) for each in stated - in_lists} | in_lists | of_required


def test_what_no_reading_is_known_for_is_told() -> None:
    with pytest.raises(ValueError, match="there is no reading for"):
        read_root({"properties": {"x": {"oneOf": []}}}, Table("Toys", "a/b", {})._number)


def test_every_source_has_its_table() -> None:
    for source in SOURCES:
        table = json.loads(command.path_of(source.system).read_text())
        assert (table["title"], table["repository"]) == (source.title, source.repository)
        assert table["filled"] == {kind: [*names] for kind, names in source.filled.items()}
        for release in table["releases"]:
            assert len(release["commit"]) == 40
            assert all(len(digest) == 64 for digest in release["files"].values())
