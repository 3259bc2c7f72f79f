"""Puts each page beside its HTML as Markdown, and lists all of them in llms.txt."""

from pathlib import Path

from toolchain.site.messages import WRAPPED

_HEAD = """# kthena_components

> Pulumi components for multi-node LLM serving on Kubernetes, and a command that checks any
> manifests before anything is applied. Each page below is also HTML: replace `.md` with `.html`.
"""


def write_plain(pages: Path, html: Path) -> None:
    """Copy the Markdown of all pages into the built site, and write llms.txt.

    Args:
        pages: The sources.
        html: The built site.
    """
    lines = []
    for page in sorted(pages.rglob("*.md")):
        name = page.relative_to(pages).as_posix()
        text = page.read_text().replace(WRAPPED, "```")
        (html / name).parent.mkdir(parents=True, exist_ok=True)
        (html / name).write_text(text)
        lines.append(f"- [{_title(text, name)}]({name})")
    (html / "llms.txt").write_text("\n".join([_HEAD, *lines, ""]))


def _title(text: str, name: str) -> str:
    lines = (line for line in text.split("\n") if line.startswith("# "))
    return next(lines, f"# {name}").removeprefix("# ")
