"""`python -m toolchain.site FOLDER`: build the site into a folder; a broken link is an error."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from kthena_components import __version__
from toolchain.site.commands import write_commands
from toolchain.site.components import write_components
from toolchain.site.messages import wrap_findings
from toolchain.site.navigation import navigation
from toolchain.site.plain import write_plain
from toolchain.site.rules import write_rules
from toolchain.site.staging import ROOT, stage_pages


def build(folder: Path) -> None:
    """Write the sources of the site and build it.

    Args:
        folder: It gets `pages` with the sources, and `html` with the site.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    made = [
        *stage_pages(pages), *write_components(pages), *write_rules(pages), *write_commands(pages)
    ]  # fmt: skip
    wrap_findings(pages)
    shutil.copy(ROOT / "toolchain/site/site.css", pages)
    (folder / "zensical.toml").write_text(_settings(navigation(made)))
    program = str(Path(sys.executable).parent / "zensical")
    subprocess.run([program, "build", "--strict"], cwd=folder, check=True)
    write_plain(pages, folder / "html")


def _settings(pages: str) -> str:
    head = (ROOT / "toolchain/site/zensical.toml").read_text()
    return head.replace("@VERSION@", __version__).replace("@NAV@", pages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m toolchain.site", description=__doc__)
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)
