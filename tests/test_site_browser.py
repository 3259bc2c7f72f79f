"""Every page of the site in a real Chromium: on a phone and a desktop, in light and dark."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.drawing.browser import OPTIONS, chromium, run, served
from tests.support.shared import Shared
from toolchain.site.__main__ import build

pytestmark = pytest.mark.programs
PHONE, DESKTOP = 375, 1280
WALK = """<!doctype html><meta charset=utf-8><body><pre id=found></pre><script>
const pages = PAGES, wrong = [];
let seen = 0;
async function look(frame, page) {
  await new Promise(done => { frame.onload = done; frame.src = "/" + page; });
  const {document: shown} = frame.contentWindow, root = shown.documentElement;
  seen += Boolean(shown.querySelector("h1"));
  if (root.scrollWidth > root.clientWidth) wrong.push(`${page}: ${root.scrollWidth} px wide`);
  for (const image of shown.images) {
    if (image.complete && !image.naturalWidth) wrong.push(`${page}: no picture ${image.src}`);
  }
  const paper = luminance(frame.contentWindow.getComputedStyle(shown.body).backgroundColor);
  for (const name of ["h1", "article p", "article a", "code"]) {
    const part = shown.querySelector(name);
    if (!part) continue;
    const ink = luminance(frame.contentWindow.getComputedStyle(part).color);
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) wrong.push(`${page}: contrast ${contrast.toFixed(1)} of ${name}`);
  }
  if (paper > 0.5 === DARK) wrong.push(`${page}: the paper is ${paper.toFixed(2)} bright`);
}
function luminance(colour) {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(one => one / 255);
  const [r, g, b] = parts.map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
async function walk() {
  const frame = document.createElement("iframe");
  frame.style.cssText = "border:0;height:900px;width:WIDTHpx";
  document.body.append(frame);
  while (pages.length) await look(frame, pages.shift());
}
Promise.all([1, 2, 3, 4].map(walk)).catch(error => wrong.push(String(error))).finally(() => {
  found.textContent = JSON.stringify({seen, wrong});
});
</script>
"""


@pytest.fixture(scope="module")
def html(shared: Shared) -> Path:
    chromium()
    return shared("site", build) / "html"


def walk(html: Path, pages: list[str], *, width: int, dark: bool) -> tuple[Any, list[str]]:
    """Open pages one after the other, and return what is wrong and the errors of the console."""
    words = {"PAGES": json.dumps(pages), "WIDTH": str(width), "DARK": json.dumps(dark)}
    text = re.sub("PAGES|WIDTH|DARK", lambda found: words[found[0]], WALK)
    (html / "walk.html").write_text(text, encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    budget = f"--virtual-time-budget={3000 * len(pages)}"
    with served(html) as address:
        shown, log = run(
            f"{address}/walk.html",
            *OPTIONS,
            scheme,
            budget,
            "--dump-dom",
            "--enable-logging=stderr",
        )
    (html / "walk.html").unlink()
    found = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert found
    assert found[1], "the pages were not seen in time"
    return json.loads(unescape(found[1])), re.findall(r".*CONSOLE.*", log)


def pages_of(html: Path) -> list[str]:
    """List the pages, but only some of the many that are made alike."""
    pages = sorted(page.relative_to(html).as_posix() for page in html.rglob("*.html"))
    alike = [page for page in pages if page.startswith(("rules/", "decisions/"))]
    return [page for page in pages if page not in alike] + alike[::25]


@pytest.mark.parametrize(
    ("width", "dark", "step"), [(PHONE, False, 1), (PHONE, True, 8), (DESKTOP, True, 8)]
)
def test_each_page_can_be_read(html: Path, width: int, step: int, *, dark: bool) -> None:
    pages = pages_of(html)[::step]
    result, errors = walk(html, pages, width=width, dark=dark)
    assert result["wrong"] == []
    assert errors == []
    assert result["seen"] == len(pages)


def test_the_walk_finds_what_is_wrong(html: Path) -> None:
    page = (html / "start.html").read_text()
    wide = (
        '<div style="width:900px">wide</div><img src="none.png"><script>throw Error("x")</script>'
    )
    (html / "wrong.html").write_text(page.replace("<article", f"{wide}<article", 1))
    result, errors = walk(html, ["wrong.html"], width=PHONE, dark=False)
    (html / "wrong.html").unlink()
    assert any("px wide" in one for one in result["wrong"]), result
    assert any("none.png" in one for one in result["wrong"]), result
    assert any("Error: x" in one for one in errors), errors
