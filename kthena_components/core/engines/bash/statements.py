"""Statements of a script, made from the grammar's tree once `tree.py` has checked it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kthena_components.core.engines.bash.simple_commands import REDIRECTS, Commands, Redirections
from kthena_components.core.engines.bash.syntax import (
    Block,
    Case,
    Chain,
    Counting,
    Evaluation,
    For,
    Function,
    If,
    Pipeline,
    Redirected,
    Simple,
    Statement,
    Subshell,
    Text,
    While,
    Word,
)
from kthena_components.core.engines.bash.words import Node, UnreadError, Words
from kthena_components.core.values.dataclass import dataclass

_SIMPLE = frozenset({"command", "test_command", "declaration_command", "unset_command"})


@dataclass(slots=True)
class Statements:
    """Makes the statements of one script."""

    source: bytes
    anchors: Mapping[int, Node]
    words: Words = field(init=False)
    commands: Commands = field(init=False)

    def __post_init__(self) -> None:
        """Let words and commands read what stands in them."""
        self.words = Words(self.source, self.anchors, self.substituted)
        self.commands = Commands(self.words)

    def block(self, nodes: Iterable[Node]) -> Block:
        """Return the statements among some nodes, with the separators that follow them."""
        found: list[tuple[Statement, bool]] = []
        open_since = -1
        for node in nodes:
            if node.type in {";", "&"}:
                if open_since < 0:
                    raise UnreadError("a separator has no command before it")
                found[-1] = found[-1][0], node.type == "&"
                open_since = -1
            elif not node.is_named:
                raise UnreadError(f"'{node.type}' is in the place of a command")
            elif node.type != "comment":
                if open_since >= 0 and b"\n" not in self.source[open_since : node.start_byte]:
                    raise UnreadError("two commands stand in one line")
                found.append((self.statement(node), False))
                open_since = node.end_byte
        return Block(tuple(found))

    def substituted(self, node: Node) -> Block:
        """Return the statements of a command substitution; `$(< file)` is `cat file`."""
        inside = node.children[1:-1]
        if len(inside) != 1 or inside[0].type != "file_redirect":
            return self.block(inside)
        found = Redirections([], [], [])
        found.read(self.words, inside[0])
        redirect = found.redirects[0]
        if found.words or redirect.mark != "<":
            raise UnreadError("a substitution holds a redirection alone")
        return Block(((Simple((), ((Text("cat", quoted=True),), redirect.target)), False),))

    def statement(self, node: Node) -> Statement:
        """Return one statement."""
        reader = _READERS.get(node.type)
        if reader is None:
            raise UnreadError(f"it has a part of the form {node.type}")
        return reader(self, node)

    def simple(self, node: Node) -> Statement:
        """Read a command of words."""
        return self.commands.command(node.children)

    def assignments(self, node: Node) -> Statement:
        """Read assignments without a command."""
        found = [node] if node.type == "variable_assignment" else node.children
        return Simple(tuple(map(self.commands.assignment, found)), ())

    def declaration(self, node: Node) -> Statement:
        """Read `export`, `local` and their like, and `unset`."""
        return self.commands.declaration(node.children)

    def test(self, node: Node) -> Statement:
        """Read `[ … ]` or `[[ … ]]`."""
        return self.commands.test(node.children)

    def negated(self, node: Node) -> Statement:
        """Read `! command`."""
        inner = self.statement(node.children[-1])
        if isinstance(inner, Pipeline):
            return Pipeline(inner.parts, not inner.negated)
        return Pipeline((inner,), negated=True)

    def pipeline(self, node: Node) -> Statement:
        """Read `a | b`; a `!` in front of it is the grammar's first part."""
        parts = [part for part in written(node) if part.is_named]
        if any(part.type == "list" for part in parts[:-1]):
            raise UnreadError("a list is part of a pipeline")
        if parts[-1].type == "list":
            # The grammar puts `|| c` of `a | b || c` into the last part.
            last = self.chain(parts[-1])
            read = [*map(self.statement, parts[:-1]), last.first]
            return Chain(self._piped(parts, read), last.rest)
        return self._piped(parts, [self.statement(part) for part in parts])

    def _piped(self, parts: Sequence[Node], read: Sequence[Statement]) -> Statement:
        """Join the commands of a pipeline."""
        first = read[0]
        if parts[0].type == "negated_command" and isinstance(first, Pipeline):
            return Pipeline((*first.parts, *read[1:]), first.negated)
        return Pipeline(tuple(read))

    def chain(self, node: Node) -> Chain:
        """Read `a && b || c`, which the grammar reads as a tree that leans left."""
        rest: list[tuple[str, Statement]] = []
        while node.type == "list":
            left, mark, right = _sides(node)
            rest.append((mark.type, self.statement(right)))
            node = left
        return Chain(self.statement(node), tuple(reversed(rest)))

    def redirected(self, node: Node) -> Statement:
        """Read a command with redirections, which belong to the last command of a list."""
        body, *others = written(node)
        found = Redirections([], [], [])
        if body.type in REDIRECTS:
            return self.commands.command(node.children)
        for redirect in others:
            found.read(self.words, redirect)
        made = self._redirect(body, found)
        for behind in found.behind:
            made = self._behind(made, behind.mark, behind.node)
        return made

    def _redirect(self, node: Node, found: Redirections) -> Statement:
        """Attach redirections to their command: the last one of a list or pipeline."""
        if node.type == "list":
            left, mark, right = _sides(node)
            first = self.chain(left)
            return Chain(first.first, (*first.rest, (mark.type, self._redirect(right, found))))
        if node.type in {"pipeline", "negated_command"}:
            whole = self.statement(node)
            if not isinstance(whole, Pipeline):
                raise UnreadError("a redirection belongs to no command")
            last = self._redirect(written(node)[-1], found)
            return Pipeline((*whole.parts[:-1], last), whole.negated)
        made = self.statement(node)
        if isinstance(made, Simple) and node.type in _SIMPLE:
            words = (*made.words, *self.commands.joined(found.words))
            return Simple(made.assignments, words, (*made.redirects, *found.redirects))
        if found.words:
            raise UnreadError("words follow the redirection of a compound command")
        return Redirected(made, tuple(found.redirects))

    def _behind(self, made: Statement, mark: str, node: Node) -> Statement:
        """Add what follows a here-document in its line."""
        if mark == "|":
            if isinstance(made, Chain) or node.type == "list":
                raise UnreadError("a list is part of a pipeline")
            whole = made if isinstance(made, Pipeline) else Pipeline((made,))
            return Pipeline((*whole.parts, self.statement(node)), whole.negated)
        more = self.chain(node)
        first = made if isinstance(made, Chain) else Chain(made, ())
        return Chain(first.first, (*first.rest, (mark, more.first), *more.rest))

    def group(self, node: Node) -> Statement:
        """Read `{ … }` or `((…))`."""
        first, *inside, last = node.children
        if first.type == "((":
            return evaluation(self, first, last)
        return self.block(inside)

    def subshell(self, node: Node) -> Statement:
        """Read `( … )`."""
        return Subshell(self.block(node.children[1:-1]))


def written(node: Node) -> list[Node]:
    """Return the parts of a node without its comments."""
    return [child for child in node.children if child.type != "comment"]


def _sides(node: Node) -> Sequence[Node]:
    sides = written(node)
    if len(sides) != 3 or sides[2].type == "list":  # noqa: PLR2004 - left, mark and right
        raise UnreadError("a list is part of a list")
    return sides


_ENDS = frozenset({";;", ";&", ";;&"})


def evaluation(reader: Statements, first: Node, last: Node) -> Evaluation:
    """Read `((…))`, given its brackets."""
    return Evaluation(reader.words.expression(first.end_byte, last.start_byte))


def condition(reader: Statements, node: Node) -> If:
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


def _branch(reader: Statements, nodes: Sequence[Node]) -> tuple[Block, Block]:
    """Return the condition and the body of an `if` or `elif`."""
    cut = next(index for index, node in enumerate(nodes) if node.type == "then")
    return reader.block(nodes[:cut]), reader.block(nodes[cut + 1 :])


def loop(reader: Statements, node: Node) -> While:
    """Read `while` and `until`."""
    first, *test, body = node.children
    return While(reader.block(test), _body(reader, body), until=first.type == "until")


def loop_over(reader: Statements, node: Node) -> For:
    """Read `for NAME in …` and `select`."""
    first, name, *rest, body = node.children
    values = [child for child in rest if child.type not in {";", "in", "comment"}]
    listed = any(child.type == "in" for child in rest)
    words = reader.commands.joined(values) if listed else None
    text = reader.words.text(name.start_byte, name.end_byte)
    return For(text, words, _body(reader, body), asks=first.type == "select")


def counting(reader: Statements, node: Node) -> Counting:
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


def _body(reader: Statements, node: Node) -> Block:
    if node.type not in {"do_group", "compound_statement"}:
        raise UnreadError("a loop has no body")
    return reader.block(node.children[1:-1])


def case(reader: Statements, node: Node) -> Case:
    """Read `case … in … esac`."""
    cut = next(index for index, child in enumerate(node.children) if child.type == "in")
    subject = reader.commands.joined(node.children[1:cut])
    items = [child for child in node.children[cut + 1 : -1] if child.type == "case_item"]
    if len(subject) != 1:
        raise UnreadError("a case has one word")
    return Case(subject[0], tuple(_item(reader, item) for item in items))


def _item(reader: Statements, node: Node) -> tuple[tuple[Word, ...], Block, str]:
    """Return the patterns of a branch of `case`, its body, and what ends it."""
    children = node.children
    cut = next(index for index, child in enumerate(children) if child.type == ")")
    end = children[-1].type if children[-1].type in _ENDS else ";;"
    body = children[cut + 1 : -1] if children[-1].type in _ENDS else children[cut + 1 :]
    start = 1 if children[0].type == "(" else 0
    return tuple(_patterns(reader, children[start:cut])), reader.block(body), end


def _patterns(reader: Statements, nodes: Sequence[Node]) -> Iterator[Word]:
    """Split the nodes of an item of `case` at `|` into patterns of one word each."""
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


def function(reader: Statements, node: Node) -> Function:
    """Read the definition of a function."""
    parts = [child for child in node.children if child.is_named and child.type != "comment"]
    name, body, *redirects = parts
    found = Redirections([], [], [])
    for redirect in redirects:
        if redirect.type not in REDIRECTS:
            raise UnreadError("a function has something after its body")
        found.read(reader.words, redirect)
    statement: Statement = reader.statement(body)
    if found.redirects:
        statement = Redirected(statement, tuple(found.redirects))
    written = reader.words.text(name.start_byte, name.end_byte)
    return Function(written, statement, bash=node.children[0].type == "function")


_READERS: Mapping[str, Callable[[Statements, Node], Statement]] = {
    "c_style_for_statement": counting,
    "case_statement": case,
    "command": Statements.simple,
    "compound_statement": Statements.group,
    "declaration_command": Statements.declaration,
    "for_statement": loop_over,
    "function_definition": function,
    "if_statement": condition,
    "list": Statements.chain,
    "negated_command": Statements.negated,
    "pipeline": Statements.pipeline,
    "redirected_statement": Statements.redirected,
    "subshell": Statements.subshell,
    "test_command": Statements.test,
    "unset_command": Statements.declaration,
    "variable_assignment": Statements.assignments,
    "variable_assignments": Statements.assignments,
    "while_statement": loop,
}
