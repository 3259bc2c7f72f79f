"""No file with a bad workload vanishes without a word, whatever charts and kustomizations do."""

import itertools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kthena_components.cli.main import main
from tests.support.manifests import CHART, FOUND, deployment

GOOD, BAD = deployment(gpus=8), deployment(gpus=4)
FOLDERS = ("a", "b", "a/charts/x", "a/templates", "a/sub", ".h", "a/sub/charts/y", "b/charts/_z")
NAMES = ("bad.yaml", ".yaml", "_bad.yaml", "BAD.YML", "bad.txt")
BROKEN = ("patches: [{path: gone.yaml}]", "resources: [https://example.com/x]", "a: !x 1", "a: [")
ROLES = ("resources", "patches", "patchesStrategicMerge", "configurations", "files", "generators")


@dataclass
class Tree:
    """Some files, and where the bad one is."""

    root: Path
    bad: Path
    named_by: list[Path] = field(default_factory=list)
    """The kustomizations that name it as an object or a patch."""
    texts: dict[Path, str] = field(default_factory=dict)

    def write(self) -> None:
        for path, text in self.texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


@st.composite
def trees(draw: st.DrawFn, root: Path) -> Tree:
    """Draw charts and kustomizations in a few folders, and one bad file in one of them."""
    below = draw(st.sampled_from(["", "templates", "crds", "patches", "charts/in/templates"]))
    bad = root / draw(st.sampled_from(FOLDERS)) / below / draw(st.sampled_from(NAMES))
    tree = Tree(root, bad, texts={bad: draw(st.sampled_from([BAD, f"{GOOD}---\n{BAD}"]))})
    if draw(st.integers(0, 4)) == 0:
        tree.texts[bad] = f"{{{{ if .Values.on }}}}\n{BAD}{{{{ end }}}}\n"
    for folder in map(root.joinpath, FOLDERS):
        for kind in draw(st.sets(st.sampled_from(["chart", "kustomization", "in"]), max_size=2)):
            if kind == "kustomization":
                _kustomize(draw, tree, folder)
            else:
                own = folder if kind == "chart" else folder / "charts" / "in"
                sort = draw(st.sampled_from(["application", "application", "library"]))
                tree.texts[own / "Chart.yaml"] = (
                    f"{CHART.format(own.name.strip('_.'))}type: {sort}\n"
                )
                if draw(st.integers(0, 5)) == 0:
                    tree.texts[own / ".helmignore"] = "bad*\n"
                if draw(st.booleans()):
                    tree.texts[own / "ci" / "x-values.yaml"] = "on: true\n"
    return tree


def _kustomize(draw: st.DrawFn, tree: Tree, folder: Path) -> None:
    stated: dict[str, object] = {"resources": ["good.yaml"] if draw(st.booleans()) else []}
    tree.texts[folder / "good.yaml"] = GOOD
    bases = draw(st.lists(st.sampled_from(FOLDERS), max_size=2, unique=True))
    stated["resources"] += [os.path.relpath(tree.root / each, folder) for each in bases]  # type: ignore[operator]
    role = draw(st.sampled_from([None, *ROLES]))
    bad, is_named = os.path.relpath(tree.bad, folder), False
    if role == "files":
        stated["configMapGenerator"] = [{"name": "x", "files": [f"bad={bad}"]}]
    elif role == "patches":
        is_named = True
        target = draw(st.sampled_from([{}, {"target": {"kind": "Deployment"}}]))
        stated["patches"] = [{"path": bad, **target}]
    elif role is not None:
        is_named = role in ("resources", "patchesStrategicMerge")
        stated[role] = [*stated.get(role, []), bad]  # type: ignore[misc]
    if draw(st.integers(0, 3)) == 0:
        stated["kind"] = "Component"
        stated["apiVersion"] = "kustomize.config.k8s.io/v1alpha1"
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in stated.items())
    if draw(st.integers(0, 3)) == 0:
        text += draw(st.sampled_from(BROKEN)) + "\n"
    name = draw(st.sampled_from(["kustomization.yaml", "kustomization.yml", "Kustomization"]))
    tree.texts[folder / name] = text
    if is_named:
        tree.named_by.append(folder / name)


def _is_told(tree: Tree, told: str) -> bool:
    """Return whether the bad workload is found, or its file is named, or what it belongs to."""
    shown = [str(each.relative_to(tree.root.parent)) for each in (tree.bad, *tree.bad.parents)
             if each.is_relative_to(tree.root)]  # fmt: skip
    named = f"{shown[0]}:" in told
    above = any(f"\n{each}{own}: not rendered: " in f"\n{told}"
                for each in shown[1:] for own in ("", "/Chart.yaml"))  # fmt: skip
    # A string is an object only by what names it, which may lie in a folder that is not read.
    where = [tree.bad, *(tree.named_by if tree.bad.suffix == ".txt" else [])]
    below = [f"/{each.parent.relative_to(tree.root)}" for each in where]
    hidden = any("/." in folder for folder in below) and "hidden)" in told
    unread = any(
        f"\n{each.relative_to(tree.root.parent)}:" in f"\n{told}" for each in tree.named_by
    )
    return FOUND in told or named or above or hidden or (tree.bad.suffix == ".txt" and unread)


def _law(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assume(tree.named_by or not tree.bad.name.endswith(".txt"))
    tree.write()
    main(["check", tree.root.name])
    seen = capsys.readouterr()
    assert _is_told(tree, seen.err + seen.out), f"{tree.bad}\n{tree.texts}\n{seen.err}{seen.out}"


COUNT = itertools.count()


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


MANY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)


@pytest.mark.on_path
@settings(MANY, max_examples=200)
@given(data=st.data())
def test_nothing_vanishes_without_programs(
    base: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    _law(data.draw(trees(base / f"m{next(COUNT)}")), capsys)


@pytest.mark.programs
@pytest.mark.on_path("kustomize", "helm")
@settings(MANY, max_examples=60)
@given(data=st.data())
def test_nothing_vanishes_with_helm_and_kustomize(
    base: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    _law(data.draw(trees(base / f"m{next(COUNT)}")), capsys)
