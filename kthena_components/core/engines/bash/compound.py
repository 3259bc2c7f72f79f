"""Conditions, loops and functions of the grammar's tree."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kthena_components.core.engines.bash.redirects import REDIRECTS, Found
from kthena_components.core.engines.bash.syntax import (
    Block,
    Case,
    Counting,
    Evaluation,
    For,
    Function,
    If,
    Redirected,
    Statement,
    While,
    Word,
)
from kthena_components.core.engines.bash.words import Node, UnreadError

if TYPE_CHECKING:
    from kthena_components.core.engines.bash.statements import Statements

_ENDS = frozenset({";;", ";&", ";;&"})


def evaluation(reader: "Statements", first: Node, last: Node) -> Evaluation:
    """Read `((…))`, given its brackets."""
    return Evaluation(reader.words.expression(first.end_byte, last.start_byte))


def condition(reader: "Statements", node: Node) -> If:
    """Read `if … elif … else … fi`."""
    _, *inside, _ = node.children
    clauses = [child for child in inside if child.type in {"elif_clause", "else_clause"}]
    branches = [_branch(reader, [child for child in inside if child not in clauses])]
    otherwise = Block(())
    for clause in clauses:
        rest = clause.children[1:]
        if clause.type == "elif_clause":
            branches.append(_branch(reader, rest))
        else:
            otherwise = reader.block(rest)
    return If(tuple(branches), otherwise)


def _branch(reader: "Statements", nodes: Sequence[Node]) -> tuple[Block, Block]:
    cut = next(index for index, node in enumerate(nodes) if node.type == "then")
    return reader.block(nodes[:cut]), reader.block(nodes[cut + 1 :])


def loop(reader: "Statements", node: Node) -> While:
    """Read `while` and `until`."""
    first, *test, body = node.children
    return While(reader.block(test), _body(reader, body), until=first.type == "until")


def loop_over(reader: "Statements", node: Node) -> For:
    """Read `for NAME in …` and `select`."""
    first, name, *rest, body = node.children
    values = [child for child in rest if child.type not in {";", "in", "comment"}]
    listed = any(child.type == "in" for child in rest)
    words = reader.commands.joined(values) if listed else None
    text = reader.words.text(name.start_byte, name.end_byte)
    return For(text, words, _body(reader, body), asks=first.type == "select")


def counting(reader: "Statements", node: Node) -> Counting:
    """Read `for ((…; …; …))`."""
    opened = next(child for child in node.children if child.type == "((")
    closed = next(child for child in node.children if child.type == "))")
    marks = [n for n in node.children if n.type == ";" and n.end_byte <= closed.start_byte]
    if len(marks) != 2:  # noqa: PLR2004 - between three expressions
        raise UnreadError("a for loop needs three expressions")
    ends = [opened.end_byte, *(end for m in marks for end in (m.start_byte, m.end_byte))]
    spans = zip(ends[::2], [*ends[1::2], closed.start_byte], strict=True)
    first, test, step = (reader.words.expression(start, end) for start, end in spans)
    return Counting(first, test, step, _body(reader, node.children[-1]))


def _body(reader: "Statements", node: Node) -> Block:
    if node.type not in {"do_group", "compound_statement"}:
        raise UnreadError("a loop has no body")
    return reader.block(node.children[1:-1])


def case(reader: "Statements", node: Node) -> Case:
    """Read `case … in … esac`."""
    cut = next(index for index, child in enumerate(node.children) if child.type == "in")
    subject = reader.commands.joined(node.children[1:cut])
    items = [child for child in node.children[cut + 1 : -1] if child.type == "case_item"]
    if len(subject) != 1:
        raise UnreadError("a case has one word")
    return Case(subject[0], tuple(_item(reader, item) for item in items))


def _item(reader: "Statements", node: Node) -> tuple[tuple[Word, ...], Block, str]:
    children = node.children
    cut = next(index for index, child in enumerate(children) if child.type == ")")
    end = children[-1].type if children[-1].type in _ENDS else ";;"
    body = children[cut + 1 : -1] if children[-1].type in _ENDS else children[cut + 1 :]
    start = 1 if children[0].type == "(" else 0
    return tuple(_patterns(reader, children[start:cut])), reader.block(body), end


def _patterns(reader: "Statements", nodes: Sequence[Node]) -> Iterator[Word]:
    loose: list[Node] = []
    for node in (*nodes, None):
        if node is None or node.type == "|":
            pattern = reader.commands.joined(loose)
            if len(pattern) != 1:
                raise UnreadError("a pattern of a case has one word")
            yield pattern[0]
            loose = []
        elif node.type != "comment":
            loose.append(node)


def function(reader: "Statements", node: Node) -> Function:
    """Read the definition of a function."""
    parts = [child for child in node.children if child.is_named and child.type != "comment"]
    name, body, *redirects = parts
    found = Found([], [], [])
    for redirect in redirects:
        if redirect.type not in REDIRECTS:
            raise UnreadError("a function has something after its body")
        found.read(reader.words, redirect)
    statement: Statement = reader.statement(body)
    if found.redirects:
        statement = Redirected(statement, tuple(found.redirects))
    written = reader.words.text(name.start_byte, name.end_byte)
    return Function(written, statement, bash=node.children[0].type == "function")
