"""Draws the packages of kthena_components and their imports, as Mermaid, in docs/architecture.md.

`make house` writes it. The imports come from grimp, which import-linter uses, too.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
BEGIN = "<!-- `make house` writes the picture below from the imports. -->\n"
END = "<!-- The picture ends here. -->\n"
PACKAGE, CORE = "kthena_components", "kthena_components.core"
_STARTERS = frozenset({"__main__"})

Imports = Mapping[str, frozenset[str]]
"""The packages that each package imports, by name."""


def house(graph: grimp.ImportGraph) -> str:
    """Return the picture, as a block of Markdown.

    Args:
        graph: The imports of the package. Those for type checkers only are left out.
    """
    outside, inside = imports_between(graph, PACKAGE), imports_between(graph, CORE)
    lines = [
        "```mermaid",
        "flowchart TD",
        *_arrows(outside, indent="  "),
        "  subgraph core",
        *_arrows(inside, indent="    "),
        "  end",
        "```",
    ]
    return "\n".join(lines) + "\n"


def imports_between(graph: grimp.ImportGraph, parent: str) -> Imports:
    """Return which packages and modules directly below a package import which others there.

    Args:
        graph: The imports of all modules.
        parent: Dotted name of the package.
    """
    start = f"{parent}."
    found = {child.removeprefix(start): set[str]() for child in graph.find_children(parent)}
    for module in graph.find_descendants(parent):
        importer = _child(module, start)
        for imported in graph.find_modules_directly_imported_by(module):
            if imported.startswith(start) and _child(imported, start) != importer:
                found[importer].add(_child(imported, start))
    return {name: frozenset(others) for name, others in found.items() if name not in _STARTERS}


def without_implied(imports: Imports) -> Imports:
    """Leave out an import if there is a longer way to the same package.

    Raises:
        RecursionError: There is a cycle, which the contracts in pyproject.toml forbid.
    """
    return {
        name: others - frozenset[str]().union(*(_reached(other, imports) for other in others))
        for name, others in imports.items()
    }


def _child(module: str, start: str) -> str:
    return module.removeprefix(start).partition(".")[0]


def _reached(name: str, imports: Imports) -> frozenset[str]:
    others = imports[name]
    return others.union(*(_reached(other, imports) for other in others))


def _arrows(imports: Imports, indent: str) -> Iterator[str]:
    for name, others in sorted(without_implied(imports).items()):
        if others:
            yield f"{indent}{name} --> {' & '.join(sorted(others))}"


def written(page: str, picture: str) -> str:
    """Return a page with the picture between its two marks.

    Raises:
        ValueError: The page does not have both marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} lacks the line {(BEGIN if not begin else END).strip()}")
    return f"{before}{BEGIN}\n{picture}\n{END}{after}"


def read_imports() -> grimp.ImportGraph:
    """Read the imports of all modules of the package."""
    return grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), house(read_imports())))
