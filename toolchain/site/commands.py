"""Writes one page for each command of `kthena-components`, from its own parser."""

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from kthena_components.cli.main import COMMANDS
from toolchain.pages.figures.command_inputs import in_words

_FIGURE = "\n![What each command reads](../command-inputs.svg)\n"


def write_commands(site: Path) -> list[str]:
    """Write the pages of all commands, and return their paths in the site, the list first."""
    folder = site / "commands"
    folder.mkdir(parents=True)
    rows = [
        f"| [{name}]({name}.md) | {told} | {in_words(name)} |"
        for name, (_, told) in COMMANDS.items()
    ]
    head = "# Commands\n\nEach command is `kthena-components COMMAND`; `--help` prints its options."
    (folder / "index.md").write_text(
        "\n".join(
            [f"{head}\n", "| command | what it does | reads |", "|---|---|---|", *rows, _FIGURE]
        )
    )
    for name, (module, told) in COMMANDS.items():
        (folder / f"{name}.md").write_text("\n".join(_page(name, module, told)) + "\n")
    return ["commands/index.md", *(f"commands/{name}.md" for name in COMMANDS)]


def _page(name: str, module: str, told: str) -> Iterator[str]:
    parser = parser_of(name, module, told)
    yield f"# {name}\n"
    yield f"{(parser.description or told).strip()}\n"
    yield f"```text\n{parser.format_usage().strip()}\n```\n"
    for group in parser._action_groups:  # noqa: SLF001 - argparse lists its options nowhere else
        actions = [one for one in group._group_actions if one.help != argparse.SUPPRESS]  # noqa: SLF001
        if actions:
            yield f"## {(group.title or 'Options').capitalize()}\n"
            yield "| option | meaning |\n|---|---|"
            yield from (_row(parser, action) for action in actions)
            yield ""
    if parser.epilog:
        yield f"## Notes\n\n```text\n{parser.epilog.strip()}\n```"


def parser_of(name: str, module: str, told: str) -> argparse.ArgumentParser:
    """Return the parser of one command."""
    top = argparse.ArgumentParser(prog="kthena-components")
    commands = top.add_subparsers()
    import_module(f"kthena_components.cli.{module}").add_parser(commands, told)
    found: argparse.ArgumentParser = commands.choices[name]
    return found


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()  # noqa: SLF001 - expands %(default)s as --help does
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    takes = "" if action.nargs == 0 or not action.option_strings else f" {_metavar(action)}"
    told = formatter._expand_help(action) if action.help else ""  # noqa: SLF001
    cell = told.replace("|", "\\|").replace("<", "&lt;")
    return f"| `{names}{takes}` | {cell} |"


def _metavar(action: argparse.Action) -> str:
    stated = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    return " ".join(stated) if isinstance(stated, tuple) else stated
