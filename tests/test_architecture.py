"""What keeps the code small and its layers apart, beside the import contracts in pyproject.toml."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kthena_components.checker.catalogue import RuleDoc, all_rules
from tests.support.for_each import for_each

ROOT = Path(__file__).parent.parent
MOST_LINES, MOST_FUNCTION_LINES = 400, 45
SOURCES = sorted(
    path
    for folder in ("kthena_components", "policies", "toolchain")
    for path in (ROOT / folder).rglob("*.py")
)
PURE = [
    "kthena_components.core",
    "kthena_components.core.plan.report",
    "kthena_components.checker.manifest",
    "kthena_components.cli.main",
]

UPDATE = "each system's rules about an update are in forbidden_changes.py"
ANY_UPDATE = "what runs the rules about an update has the one rule for any kind"
ROLE = "the inputs of a role's engine are one file, named after most of its rules"
ELSEWHERE = {
    "kthena-gang-fixed": UPDATE,
    "kthena-partition-scaling": UPDATE,
    "kthena-model-name-fixed": UPDATE,
    "lws-lower-then-raise": UPDATE,
    "lws-subgroups-fixed": UPDATE,
    "gpu-named-larger": ANY_UPDATE,
    "sglang-data-multi-node": ROLE,
    "kv-transfer-supported": ROLE,
    "hf-config-shape": ROLE,
}
"""Rules whose files share no word with them, with the reason."""

OF_OUR_OWN = ("reading.values.get('expert') in _NO_EXPERTS",)
"""Look-ups of values that our own code has made."""

each_source = for_each("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])


@each_source
def test_what_a_manifest_states_is_not_looked_up_in_a_set(path: Path) -> None:
    """A list is not a member of a set, but an error: `stated.get("kind") in {"Job"}` may raise."""
    tree = ast.parse(path.read_text())
    sets = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_set(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = [ast.unparse(node) for node in ast.walk(tree) if _looks_up(node, sets)]
    assert [each for each in found if each not in OF_OUR_OWN] == []


def _is_set(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and ast.unparse(node.func) == "frozenset"
    return is_call or isinstance(node, ast.Set)


def _looks_up(node: ast.AST, sets: set[str]) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return False
    left, right = node.left, node.comparators[0]
    is_set = _is_set(right) or (isinstance(right, ast.Name) and right.id in sets)
    stated = isinstance(left, ast.Call) and ast.unparse(left.func).endswith(".get")
    return is_set and stated


@pytest.mark.parametrize("module", PURE)
def test_the_pure_layers_do_not_load_pulumi(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "print([name for name in sys.modules if name.partition('.')[0].startswith('pulumi')])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert loaded.stdout.strip() == "[]"


@each_source
def test_a_file_can_be_read_at_once(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


@each_source
def test_a_function_fits_on_a_page(path: Path) -> None:
    long = [f"{name} {lines}" for name, lines in functions(path) if lines > MOST_FUNCTION_LINES]
    assert long == []


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Give the name and the length of each function in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_the_sources_are_found() -> None:
    assert len(SOURCES) > 40


def test_no_module_binds_a_name_twice() -> None:
    """Functions above the second binding use its value: after two files became one, say."""
    found = {
        str(file.relative_to(ROOT)): twice
        for file in SOURCES
        if (twice := [name for name, times in bound(file).items() if times > 1])
    }
    assert found == {}


def bound(path: Path) -> Counter[str]:
    """Count how often a module binds each of its own names."""
    names = Counter[str]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            walked = (part for target in targets for part in ast.walk(target))
            names.update(part.id for part in walked if isinstance(part, ast.Name))
    return names


def test_no_number_is_read_from_the_text_of_an_object() -> None:
    """`int(str(size))` quiets mypy and fails for an Unknown: narrow the type."""
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\b(int|float)\(str\(", line)
    ]
    assert found == []


def test_no_pattern_has_a_possessive_group() -> None:
    """Python before 3.11.5 matches too much with them: write an atomic group, `(?>…)`."""
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\)[*+?]\+", line)
    ]
    assert found == []


def test_a_rule_is_in_a_file_that_shares_a_word_with_it() -> None:
    """The name of its system is no such word: all files of a system's folder have it."""
    apart = {rule.name for rule in all_rules() if rule.module and not shares_a_word(rule)}
    assert apart == set(ELSEWHERE)


def shares_a_word(rule: RuleDoc) -> bool:
    """Return whether the file of a rule has a word of the rule's name, in any number."""
    *folders, file = rule.module.split(".")
    if folders[-1] == "systems" or file in {"rules", "system", "__init__"}:
        return True  # all rules of a small system are in one file
    system = folders[2].split("_") if folders[1] == "systems" else []
    words = [word for word in rule.name.split("-") if word not in [*system, "and"]]
    return any(word.removesuffix("s") in file for word in words if len(word) > 2)
