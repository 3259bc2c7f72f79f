"""The pictures in a real browser: nothing overlaps, nothing is cut, in light and dark."""

import subprocess
from html import escape
from pathlib import Path
from typing import Any

import pytest

from kthena_components.core.values.display import visible
from kthena_components.drawing.page import draw_page
from kthena_components.drawing.rows_and_mermaid import draw_mermaid
from tests.drawing.browser import chromium, measure
from tests.drawing.hostile import NAMES, hostile
from tests.support.pictured import pictured
from toolchain.programs import cache_root

pytestmark = pytest.mark.programs

MEASURE = (Path(__file__).with_name("measure.js")).read_text(encoding="utf-8")
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(13, 17, 23)"
PHONE, DESKTOP = 375, 1280
MERMAID = "11.17.2"
RENDER = """
async function measure(document, window) {
  const {mermaid} = window;
  mermaid.initialize({startOnLoad: false, securityLevel: "strict"});
  const code = document.getElementById("code").textContent;
  await mermaid.parse(code);
  const {svg} = await mermaid.render("drawn", code);
  document.body.innerHTML = svg;
  const drawn = document.querySelector("svg");
  return {
    text: drawn.textContent,
    nodes: drawn.querySelectorAll("g.node").length,
    alien: drawn.querySelectorAll("script, a, img, iframe, [onclick], [onload], [onerror]").length,
    error: drawn.getAttribute("aria-roledescription") === "error" ? code : undefined,
  };
}
"""


@pytest.mark.parametrize("servings", [1, 20, 300])
@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)])
def test_nothing_overlaps_and_nothing_is_cut(
    tmp_path: Path, servings: int, width: int, *, dark: bool
) -> None:
    seen = measure(tmp_path, draw_page(pictured(servings)), MEASURE, width=width, dark=dark)
    assert seen["wrong"] == []
    assert seen["checked"] >= 30 * servings**0.5
    assert seen["paper"] == (DARK if dark else LIGHT)
    assert (seen["unnamed"], seen["positive"], seen["active"]) == (0, 0, 0)
    assert seen["reached"] >= 2


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_hostile_names_are_texts(tmp_path: Path, width: int) -> None:
    seen = measure(tmp_path, draw_page(hostile()), MEASURE, width=width)
    assert seen["wrong"] == []
    assert seen["active"] == 0


def test_the_measure_finds_what_is_wrong(tmp_path: Path) -> None:
    page = draw_page(pictured(1))
    narrow = page.replace('width="160"', 'width="16"').replace("--ink: #1f2328", "--ink: #cccccc")
    assert narrow != page
    wrong = "\n".join(measure(tmp_path, narrow, MEASURE)["wrong"])
    assert "cut: 1 chat-0 prefill-0" in wrong
    assert "contrast 1." in wrong
    moved = page.replace("translate(0 41)", "translate(0 6)")
    assert moved != page
    assert "nodes overlap" in "\n".join(measure(tmp_path, moved, MEASURE)["wrong"])


def mermaid(folder: Path) -> Path:
    """Put the renderer that GitHub uses into a folder; skip the test if npm cannot give it."""
    kept = cache_root() / f"mermaid-{MERMAID}.min.js"
    if not kept.exists():
        command = ("npm", "pack", f"mermaid@{MERMAID}", "--pack-destination", str(folder))
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"npm does not give mermaid {MERMAID}: {error}")
        packed = str(folder / f"mermaid-{MERMAID}.tgz")
        words = ("tar", "-xzf", packed, "-C", str(folder), "package/dist/mermaid.min.js")
        subprocess.run(words, check=True, capture_output=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        written = kept.with_suffix(f".{folder.name}")
        written.write_bytes((folder / "package/dist/mermaid.min.js").read_bytes())
        written.rename(kept)
    (folder / "mermaid.js").symlink_to(kept)
    return kept


def code_of(block: str) -> str:
    return block.partition("```mermaid\n")[2].partition("\n```")[0]


def rendered(folder: Path, block: str) -> dict[str, Any]:
    chromium()
    mermaid(folder)
    page = (
        f"<!doctype html><meta charset=utf-8><pre id=code>{escape(code_of(block))}</pre>"
        "<script src=mermaid.js></script>"
    )
    found: dict[str, Any] = measure(folder, page, RENDER)
    return found


@pytest.mark.parametrize("servings", [1, 20, 300])
def test_mermaid_renders_the_block(tmp_path: Path, servings: int) -> None:
    drawn = rendered(tmp_path, draw_mermaid(pictured(servings)))
    assert int(drawn["nodes"]) > 2
    assert "serving/chat-" in drawn["text"]
    assert drawn["alien"] == 0


def test_mermaid_shows_hostile_names_as_they_are(tmp_path: Path) -> None:
    drawn = rendered(tmp_path, draw_mermaid(hostile()))
    assert drawn["alien"] == 0
    squeezed = "".join(drawn["text"].split())
    for name in NAMES:
        assert "".join(visible(name).split()) in squeezed, name
