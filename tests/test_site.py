"""The site of the documentation: it builds, holds a page for everything, and loads nothing else."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from kthena_components.checker.catalogue import all_rules
from kthena_components.cli.main import COMMANDS
from tests.support.shared import Shared
from toolchain.site.__main__ import build
from toolchain.site.components import write_components
from toolchain.site.in_languages import LANGUAGES
from toolchain.site.messages import WRAPPED, wrap_findings
from toolchain.site.navigation import navigation
from toolchain.site.staging import turn_links


class _Addresses(HTMLParser):
    """Collects the addresses of a page: of links, and of what the browser loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.links: dict[str, None] = {}
        self.loaded: list[str] = []
        self.anchors: set[str] = {"__skip"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        stated = dict(attrs)
        self.anchors.update(filter(None, [stated.get("id")]))
        if tag == "a" and stated.get("href"):
            self.links[str(stated["href"])] = None
        elif tag == "link" and "stylesheet" in str(stated.get("rel")):
            self.loaded.append(str(stated["href"]))
        elif stated.get("src"):
            self.loaded.append(str(stated["src"]))


@pytest.fixture(scope="module")
def html(shared: Shared) -> Path:
    return shared("site", build) / "html"


@pytest.mark.programs
def test_each_link_leads_to_a_page_or_an_anchor_and_nothing_is_loaded_from_elsewhere(
    html: Path,
) -> None:
    read = {page: _read(page) for page in html.rglob("*.html")}
    broken = [
        f"{page.relative_to(html)} -> {address}"
        for page, found in read.items()
        for address in found.links
        if not _leads_somewhere(page, address, read)
    ]
    loaded = {address for found in read.values() for address in found.loaded}
    assert len(read) > len(all_rules())
    assert broken == []
    assert [address for address in loaded if urlsplit(address).netloc] == []
    missing = [
        f"{page.relative_to(html)}: {address}"
        for page, found in read.items()
        for address in found.loaded
        if not _leads_somewhere(page, address, read)
    ]
    assert missing == []


@pytest.mark.programs
def test_there_is_a_page_for_each_rule_command_and_component(html: Path) -> None:
    wanted = [f"rules/{rule.name}" for rule in all_rules()]
    wanted += [f"commands/{name}" for name in COMMANDS]
    wanted += [f"components/{name}" for name in ("ModelServing", "ServingGroup", "Role", "Queue")]
    listed = (html / "llms.txt").read_text()
    assert [name for name in wanted if not (html / f"{name}.html").exists()] == []
    assert [name for name in wanted if not (html / f"{name}.md").exists()] == []
    assert [name for name in wanted if f"({name}.md)" not in listed] == []


@pytest.mark.programs
def test_the_page_of_a_rule_shows_a_real_finding(html: Path) -> None:
    page = (html / "rules/world-size-equals-gpus.md").read_text()
    assert "16 ranks, but its 3 pods × 8 GPUs hold 24" in page
    assert "kthena_components/core/rules/world_size_equals_gpus.py" in page


def test_links_to_files_that_are_no_pages_become_their_paths() -> None:
    pages = {"docs/check.md": "check.md", "README.md": "index.md"}
    text = "[a](check.md#x) [b](../README.md) [levels.json](../kthena_components/levels.json)"
    rule = "[w](policies.md#world-size-equals-gpus) [all](policies.md) [web](https://example.com)"
    assert turn_links(text, "docs/own.md", "own.md", pages) == (
        "[a](check.md#x) [b](index.md) `kthena_components/levels.json`"
    )
    assert turn_links(rule, "docs/own.md", "sub/own.md", pages) == (
        "[w](../rules/world-size-equals-gpus.md) [all](../rules/index.md) [web](https://example.com)"
    )
    shown = turn_links(
        "![a](docs/a.svg) ![b](https://example.com/b.svg)", "README.md", "index.md", {}
    )
    assert shown == "![a](a.svg) ![b](https://example.com/b.svg)"
    assert turn_links("![a](../a.svg)", "docs/sub/b.md", "sub/b.md", {}) == "![a](../a.svg)"
    fenced = "```\n[a](../README.md)\n```"
    assert turn_links(fenced, "docs/own.md", "own.md", pages) == fenced


def test_a_page_without_a_place_in_the_navigation_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"pages without a place in .*: \['lost.md'\]"):
        navigation(["lost.md"])


def _read(page: Path) -> _Addresses:
    found = _Addresses()
    found.feed(page.read_text())
    return found


def _leads_somewhere(page: Path, address: str, read: dict[Path, _Addresses]) -> bool:
    path, fragment, is_inside = _split(address)
    if not is_inside or page.name == "404.html":
        return True
    target = _target(page.parent, path) if path else page
    if target not in read:
        return target.exists()
    return not fragment or fragment in read[target].anchors


@cache
def _split(address: str) -> tuple[str, str, bool]:
    """Give the path and the fragment, and whether the address is one of the site."""
    parts = urlsplit(address)
    return unquote(parts.path), unquote(parts.fragment), not (parts.scheme or parts.netloc)


@cache
def _target(folder: Path, path: str) -> Path:
    """Give the file of a path: each page has the same few hundred links to all others."""
    return (folder / path).resolve()


def test_findings_wrap_and_tables_and_code_do_not(tmp_path: Path) -> None:
    finding = f"replicas: {'is 0, ' * 20}but must be at least 1. Write 1. [range]\n"
    table = f"serving    role\n---------  ------\n{finding}"
    page = "\n".join(
        f"```{language}\n{text}```\n"
        for language, text in (("", finding), ("yaml", finding), ("text", finding), ("", table))
    )
    (tmp_path / "a.md").write_text(page)
    wrap_findings(tmp_path)
    fences = re.findall(r"^```(.+)$|^```\n(?=\S)", (tmp_path / "a.md").read_text(), re.MULTILINE)
    wraps = WRAPPED.removeprefix("```")
    assert fences == [wraps, "yaml", wraps, ""]


def test_the_default_beside_a_field_is_short(tmp_path: Path) -> None:
    (page,) = [page for page in write_components(tmp_path) if Path(page).stem == "ModelServing"]
    text = (tmp_path / page).read_text()
    assert re.findall(r"<br>default ([^|]{42,}) \|", text) == []
    assert "| `backend`<br>[Backend](#backend)<br>default `native` |" in text
    assert "<br>default the port of the role's engine |" in text


def test_the_example_of_a_component_is_one_block_of_tabs(tmp_path: Path) -> None:
    for page in write_components(tmp_path)[1:]:
        example, _, _ = (tmp_path / page).read_text().partition("\n## Fields")
        assert re.findall(r'^=== "(.*)"$', example, re.MULTILINE) == [
            language.name for language in LANGUAGES
        ], page
        assert not re.search(r"^```", example, re.MULTILINE), page
