"""Which program is taken from PATH, if a checkout wants to decide about it.

The judge of the walk is the kernel: a lookup does not depend on a checkout if and only if it still
works when the checkout is empty.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.rendering.isolation import checkouts_around, find_program, why_missing

Install = Callable[[str], Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Make an executable file below the folder of the test."""

    def made(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    return made


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout, and work in it."""
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout")
    return tmp_path / "checkout"


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path | str) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))


def find(checkout: Path, *names: str) -> str | None:
    return find_program(names or ("helm",), checkouts_around([str(checkout)]))


@pytest.mark.parametrize(
    "path", [".", "bin", "", "./bin", "../checkout/bin", "{}/bin", "{}", "{}/bin/../bin/", "{}/./"]
)
def test_no_program_of_what_is_checked_is_run(
    checkout: Path, install: Install, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    install("checkout/helm")
    install("checkout/bin/helm")
    on_path(monkeypatch, path.format(checkout))
    assert find(checkout) is None
    # The next one on PATH is taken.
    outside = install("tools/helm")
    on_path(monkeypatch, path.format(checkout), outside.parent)
    assert find(checkout) == str(outside)


@pytest.mark.parametrize("path", [":", "::", ":{}", "{}:"])
def test_an_empty_entry_is_not_the_current_folder(
    checkout: Path, install: Install, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    install("checkout/helm")
    monkeypatch.setenv("PATH", path.format("/nowhere"))
    assert find(checkout) is None


def test_no_link_of_what_is_checked_is_run(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "helm").symlink_to(sys.executable)
    on_path(monkeypatch, checkout)
    assert find_program(("helm",), ["/elsewhere"]) == str(checkout / "helm")
    assert find(checkout) is None
    # Neither is a program through a folder that is a link of the checkout, to a good folder.
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "kubectl").symlink_to(sys.executable)
    (checkout / "bin").symlink_to(tmp_path / "tools")
    (tmp_path / "profile").symlink_to(checkout / "bin")
    on_path(monkeypatch, tmp_path / "profile")
    assert find(checkout, "kubectl") is None
    on_path(monkeypatch, tmp_path / "tools")
    assert find(checkout, "kubectl") == str(tmp_path / "tools" / "kubectl")


def test_links_into_what_is_checked_are_followed(
    checkout: Path, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("checkout/bin/helm")
    (tmp_path / "profile").symlink_to("checkout/bin")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "helm").symlink_to("../profile/helm")
    for folder in (tmp_path / "profile", tmp_path / "tools"):
        on_path(monkeypatch, folder)
        assert shutil.which("helm") == str(folder / "helm")
        assert find(checkout) is None
        told = why_missing(("helm",), checkouts_around([str(checkout)]))
        assert told == (
            f"PATH leads to {folder / 'helm'}, which a checked folder decides about, so it is not "
            "started, and there is no other helm on PATH: install helm outside the checkout"
        )


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_the_kernels_own_links_are_followed(
    checkout: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("checkout/helm")
    on_path(monkeypatch, "/proc/self/cwd")
    assert shutil.which("helm") == "/proc/self/cwd/helm"
    assert find(checkout) is None


def test_what_merely_begins_with_the_name_of_the_checkout_is_another_folder(
    checkout: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = install("checkout-tools/helm")
    on_path(monkeypatch, outside.parent)
    assert find(checkout) == str(outside)
    on_path(monkeypatch, f"{checkout}/../checkout-tools")
    assert find(checkout) == f"{checkout}/../checkout-tools/helm"


def test_what_cannot_be_executed_is_skipped(
    checkout: Path, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder" / "helm").mkdir(parents=True)
    install("data/helm").chmod(0o644)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "helm").symlink_to("nowhere")
    (tmp_path / "circle").mkdir()
    (tmp_path / "circle" / "helm").symlink_to("helm")
    outside = install("tools/helm")
    folders = [tmp_path / name for name in ("folder", "data", "gone", "circle", "tools")]
    on_path(monkeypatch, *folders)
    assert find(checkout) == shutil.which("helm") == str(outside)


def test_the_best_name_is_taken_then_the_first_folder(
    checkout: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl, kustomize = install("one/kubectl"), install("two/kustomize")
    on_path(monkeypatch, kubectl.parent, kustomize.parent)
    assert find(checkout, "kustomize", "kubectl") == str(kustomize)
    kustomize.unlink()
    assert find(checkout, "kustomize", "kubectl") == str(kubectl)
    install("checkout/kustomize")
    on_path(monkeypatch, checkout, kubectl.parent)
    assert find(checkout, "kustomize", "kubectl") == str(kubectl)
    kubectl.unlink()
    (checkout / "kustomize").unlink()
    told = why_missing(("kustomize", "kubectl"), ["/elsewhere/that/is/not"])
    assert told == "there is no kustomize or kubectl on PATH"


def test_a_submodule_counts_with_the_repository_around_it(checkout: Path, tmp_path: Path) -> None:
    inner = checkout / "modules" / "inner"
    (inner / "manifests").mkdir(parents=True)
    assert checkouts_around([str(inner / "manifests")]) == [
        str(inner / "manifests"), str(checkout)
    ]  # fmt: skip
    (inner / ".git").write_text("gitdir: ../../.git/modules/inner\n")
    (tmp_path / ".git").mkdir()  # a home folder in git is not the checkout
    assert checkouts_around([str(inner / "manifests")]) == [
        str(inner / "manifests"), str(inner), str(checkout)
    ]  # fmt: skip
    assert checkouts_around(["manifests"]) == [str(checkout / "manifests"), str(checkout)]


PLACES = ("a", "b", "checkout/a", "checkout/b")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_program_is_taken_iff_the_kernel_finds_it_without_the_checkout(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Draw folders, links and a PATH; empty the checkout, and ask the kernel again."""
    root = tmp_path_factory.mktemp("law")
    (root / "checkout").mkdir()
    for place in PLACES:
        target = data.draw(st.sampled_from([None, *PLACES]), label=place)
        if target is None:
            (root / place).mkdir()
        elif data.draw(st.booleans()):
            (root / place).symlink_to(root / target)
        else:
            (root / place).symlink_to(os.path.relpath(root / target, (root / place).parent))
    for place in PLACES:
        file = root / place / "helm"
        if (root / place).is_dir() and not os.path.lexists(file) and data.draw(st.booleans()):
            target = data.draw(st.sampled_from([None, *PLACES]))
            if target is None:
                file.write_text("#!/bin/sh\n")
                file.chmod(0o755)
            else:
                file.symlink_to(root / target / "helm")
    spelled = st.sampled_from([*PLACES, "checkout/../a", "a/.", "b/../a", "checkout/a/../b"])
    folders = [str(root / each) for each in data.draw(st.lists(spelled, max_size=4))]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", os.pathsep.join(folders))
        found = find_program(("helm",), [str(root / "checkout")])
        (root / "checkout").rename(root / "moved")
        (root / "checkout").mkdir()
        assert found == shutil.which("helm")
