"""Opens pages in a real Chromium and measures them: boxes, colours and strings.

A page is shown in a frame of a second page, because its own policy allows no script. The frame has
the width of the screen that is tested. Both are served on loopback.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
_BUDGET = "--virtual-time-budget=30000"
_FRAME = """<!doctype html><meta charset=utf-8><body style="margin:0">
<iframe id=frame src="page.html" style="border:0;width:{width}px;height:3000px"></iframe>
<pre id=found></pre>
<script>
{script}
frame.onload = async () => {{
  let result;
  try {{ result = await measure(frame.contentDocument, frame.contentWindow); }}
  catch (error) {{ result = {{error: String(error.stack || error)}}; }}
  found.textContent = JSON.stringify(result);
}};
</script>
"""
_FOUND = re.compile(r'<pre id="found">(.*?)</pre>', re.DOTALL)


def chromium() -> str:
    """Return the path of Chromium; skip the test if there is none."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is on PATH, and CHROMIUM is not set")
    return found


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Any:
    """Serve a folder on loopback, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def measure(folder: Path, page: str, script: str, *, width: int = 1280, dark: bool = False) -> Any:
    """Open a page and return what a script's function `measure(document, window)` returns."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    (folder / "frame.html").write_text(_FRAME.format(width=width, script=script), encoding="utf-8")
    with served(folder) as address:
        shown = _run(f"{address}/frame.html", "--dump-dom", dark=dark)
    found = _FOUND.search(shown)
    assert found, shown[-2000:]
    assert found[1], "the page was not measured in time"
    result = json.loads(unescape(found[1]))
    assert not (isinstance(result, dict) and "error" in result), result
    return result


def screenshot(page: Path, image: Path, *, width: int, height: int, dark: bool = False) -> None:
    """Save what a browser shows of a file."""
    options = (f"--window-size={width},{height}", f"--screenshot={image}")
    _run(page.absolute().as_uri(), *options, dark=dark)


def _run(address: str, *options: str, dark: bool) -> str:
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    return run(address, *OPTIONS, _BUDGET, scheme, *options)[0]


def run(address: str, *options: str) -> tuple[str, str]:
    """Start a browser with these options, and give both of its outputs."""
    with tempfile.TemporaryDirectory() as profile:
        command = (chromium(), *options, f"--user-data-dir={profile}", address)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout, done.stderr
