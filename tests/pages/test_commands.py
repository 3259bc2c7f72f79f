"""Each block of README and docs that begins with `$` is run, and prints what the page shows."""

import re
from pathlib import Path

import pytest

from kthena_components.convert.sources_and_kept import converters
from tests.pages.stages import ELSEWHERE, IN_CHECKOUT, IN_PROCESS, NOT_RUN, WITH_PROGRAMS, followed
from tests.support.follow import follow
from tests.support.pages import ROOT, File, Step, agrees, items, pages, steps
from tests.support.programs import path_with
from tests.support.shells import InProcess

HERE = sorted({*followed()} - {*ELSEWHERE, *IN_CHECKOUT, *WITH_PROGRAMS})


@pytest.mark.parametrize("page", HERE)
def test_a_page_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page in IN_PROCESS:
        IN_PROCESS[page](tmp_path)
    monkeypatch.chdir(tmp_path)
    follow(page, InProcess(capsys), tmp_path)


@pytest.mark.programs
@pytest.mark.parametrize("page", WITH_PROGRAMS)
def test_a_page_with_helm_and_kustomize_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", path_with(tmp_path / "programs", "helm", "kustomize"))
    WITH_PROGRAMS[page](tmp_path)
    monkeypatch.chdir(tmp_path)
    follow(page, InProcess(capsys), tmp_path)


def test_no_command_is_overlooked() -> None:
    """A prompt anywhere on a page is a command that is followed, or one with a reason."""
    prompts = {
        (page, found[1])
        for page in pages()
        for found in re.finditer(r"^\s*\$ (.*)", (ROOT / page).read_text(), re.MULTILINE)
    }
    assert prompts == {(page, step.command) for page in pages() for step in steps(page)}
    assert len(prompts) > len(HERE)


@pytest.mark.parametrize("page", ELSEWHERE)
def test_a_page_that_is_followed_elsewhere_is_named_there(page: str) -> None:
    elsewhere = ELSEWHERE[page]
    assert elsewhere.why
    text = (ROOT / elsewhere.module).read_text()
    assert f'follow("{page}"' in text
    assert steps(page)


def test_what_is_not_run_has_a_reason() -> None:
    for (page, command), why in NOT_RUN.items():
        assert why.strip()
        assert command in {step.command for step in steps(page)}


def test_a_page_is_compared() -> None:
    """Comparing with `…` and with what varies refuses everything else."""
    assert agrees("a\nb\nc\n", "a\n…\nc\n")
    assert agrees("a\nc\n", "a\n…\nc\n")
    assert not agrees("a\nb\nc\n", "a\nc\n")
    assert not agrees("a\nb\n", "a\n…\nc\n")
    assert agrees("ready after 31 s: 9\n", "ready after 14 s: 9\n", [r"\d+ s"])
    assert not agrees("ready after 31 s: 8\n", "ready after 14 s: 9\n", [r"\d+ s"])


@pytest.mark.parametrize("backend", [name for name, _, _ in converters()])
def test_the_page_of_a_backend_shows_how_its_objects_become_a_stack(backend: str) -> None:
    shown = items(f"docs/backends/{backend}.md")
    assert [one.name for one in shown if isinstance(one, File)][1:] == ["out/Pulumi.converted.yaml"]
    assert any(one.command.startswith("kthena-components convert --to stack") for one in shown
               if isinstance(one, Step))  # fmt: skip
