"""Copies the repository's pages into the site's sources, and turns their links to files around.

A page of the repository may link to any file of it. The site holds pages only, so a link to another
file becomes that file's path, as code.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from kthena_components.checker.catalogue import rule_names

ROOT = Path(__file__).parents[2]
BESIDE_DOCS: Mapping[str, str] = {
    "README.md": "index.md",
    "AGENTS.md": "assistants.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "report-a-vulnerability.md",
    "examples/README.md": "examples.md",
}
"""Pages outside of docs/, and where the site has them."""
_REPLACED = frozenset({"policies.md"})
"""Pages that the reference of the site replaces."""
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})")


def stage_pages(site: Path) -> list[str]:
    """Copy all pages, and return their paths in the site.

    Args:
        site: The folder of the site's sources.
    """
    docs = ROOT / "docs"
    for picture in [*docs.rglob("*.svg"), *docs.rglob("*.png")]:
        at = site / picture.relative_to(docs)
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, at)
    pages = dict(_pages())
    for source, target in pages.items():
        text = (ROOT / source).read_text()
        at = site / target
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(turn_links(text, source, target, pages))
    return list(pages.values())


def _pages() -> Iterator[tuple[str, str]]:
    """List the pages: the path in the repository, and the path in the site."""
    yield from BESIDE_DOCS.items()
    docs = ROOT / "docs"
    for page in sorted(docs.rglob("*.md")):
        name = page.relative_to(docs).as_posix()
        if name not in _REPLACED:
            yield f"docs/{name}", name


def turn_links(text: str, source: str, target: str, pages: Mapping[str, str]) -> str:
    """Write the links and the pictures of a page, all below docs/, as they are in the site.

    Args:
        text: The page in Markdown.
        source: Its path in the repository.
        target: Its path in the site.
        pages: The path in the site of each page of the repository.
    """
    up, rules = "../" * target.count("/"), rule_names()

    def turned(found: re.Match[str]) -> str:
        address, _, anchor = found["target"].partition("#")
        if "://" in address or not address:
            return found[0]
        path = _normal(Path(source).parent / address)
        if found["picture"]:
            return f"![{found['text']}]({up}{path.removeprefix('docs/')})"
        if path == "docs/policies.md":
            name = (
                f"{anchor}.md" if anchor in rules else f"index.md{f'#{anchor}' if anchor else ''}"
            )
            return f"[{found['text']}]({up}rules/{name})"
        if path in pages:
            return f"[{found['text']}]({up}{pages[path]}{f'#{anchor}' if anchor else ''})"
        shown = found["text"].strip("`")
        return f"`{path}`" if shown in {path, Path(path).name} else f"{found['text']} (`{path}`)"

    lines, fence = [], ""
    for line in text.split("\n"):
        begins = _FENCE.match(line)
        if begins and not fence:
            fence = begins[2]
        elif fence and line.strip() == fence:
            fence = ""
        elif not fence:
            line = _LINK.sub(turned, line)  # noqa: PLW2901 - the line as it is written
        lines.append(line)
    return "\n".join(lines)


def _normal(path: Path) -> str:
    """Resolve the `..` of a path inside the repository."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
