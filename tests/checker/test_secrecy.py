"""Nothing that a rule says depends on a secret, but that it is said."""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.catalogue import rule_names
from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.secrecy import (
    Sealed,
    check_sealed,
    conceal,
    hidden,
    hide,
    opened,
    without_login,
)
from kthena_components.core.findings import Finding, Level, Waiver
from kthena_components.core.remedies import write
from kthena_components.core.values.display import SECRET
from kthena_components.core.values.unknown import OUTPUT_OPEN
from tests.policies.objects import UNKNOWN
from tests.rules.cases import TODAY, documents, read_cases
from tests.support.specs import Args, changed

Place = tuple[Any, ...]
ENGINE = "spec.template.spec.containers[0]"


def test_a_tree_without_seals_is_given_back_as_it_is() -> None:
    tree = {"a": [1, {"b": None}], "c": "text"}
    assert opened(tree) is tree
    assert hidden(tree) is tree


def test_seals_are_opened_and_hidden() -> None:
    tree = {"a": [Sealed("x"), 2], "b": Sealed(Sealed(7)), "c": {"d": "y"}}
    assert opened(tree) == {"a": ["x", 2], "b": 7, "c": {"d": "y"}}
    assert hidden(tree) == {"a": [SECRET, 2], "b": SECRET, "c": {"d": "y"}}


def test_what_is_not_known_hides_nothing() -> None:
    assert hide(UNKNOWN) == UNKNOWN
    assert hide([UNKNOWN]) == [UNKNOWN]
    assert hide(f"a word and {OUTPUT_OPEN}7\ue001") == SECRET


def test_a_secret_in_a_script_hides_no_other_word() -> None:
    script = ["sh", "-c", "vllm serve m --max-model-len raven --swap-space pearl"]
    body = changed(documents("deployment")[0], {f"{ENGINE}.command": Sealed(script)})
    told = [str(finding) for finding in check_sealed(check_manifest, body)]
    assert any("--max-model-len takes an integer, not '[secret]'" in text for text in told)
    assert not any("raven" in text or "pearl" in text for text in told)


def test_a_list_keeps_its_shape_and_words_that_are_nobodys_secret() -> None:
    container = {
        "name": "main",
        "image": "vllm/vllm-openai:v1",
        "command": ["sh", "-c", "exec vllm serve org/model -tp 8 --seed=7 --mine=x a b c"],
        "env": [{"name": "T", "value": None}],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "tty": True,
    }
    assert hidden(Sealed([Sealed(container)])) == [{
        "name": SECRET,
        "image": f"vllm/vllm-openai:{SECRET}",
        "command": ["sh", "-c", f"exec vllm serve {SECRET} -tp {SECRET} --seed={SECRET} {SECRET}"],
        "env": [{"name": SECRET, "value": None}],
        "resources": {"limits": {SECRET: SECRET}},
        "tty": SECRET,
    }]  # fmt: skip


def finding(path: str, seen: str, remedy: str = "", **fields: Any) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, **{"rule": "shm-present", **fields})


def retold(found: Finding, *shown: Finding, shadow: object = None) -> Finding:
    (told,) = conceal([found], lambda _: shown, {} if shadow is None else shadow)
    return told


def test_what_is_said_either_way_is_said() -> None:
    one = finding("a.b", "is wrong", "mend it")
    assert retold(one, one) == one


def test_a_fix_is_shown_only_if_it_does_not_depend_on_a_secret() -> None:
    same = [finding("a", "is wrong", write(value, "write it")) for value in ("x", "x", SECRET)]
    assert retold(*same[:2]).fixes == same[0].fixes
    assert retold(same[0], same[2]) == same[0]
    assert retold(same[0], same[2]).fixes == ()
    shown = finding("a", f"is {SECRET}", write(SECRET, "write it"))
    assert retold(finding("a", "is x", write("x", "write it")), shown).fixes == ()


def test_the_same_sentence_with_a_secret_in_it_is_said() -> None:
    shown = finding("a", f"is '{SECRET}' in {SECRET}", f"write {SECRET}")
    assert retold(finding("a", "is 'x' in y", "write z"), shown) == shown
    assert retold(finding("k[0]", "b"), finding(SECRET, SECRET)) == finding(SECRET, SECRET)


@pytest.mark.parametrize(
    "shown",
    [
        finding("a", f"is {SECRET} and more"),
        finding("a", "is another"),
        finding("a", f"is {SECRET}", rule="image-pinned"),
        finding("a", f"is {SECRET}", level=Level.ADVISORY),
        finding("b", f"is {SECRET}"),
    ],
    ids=["longer", "other", "rule", "level", "path"],
)
def test_another_sentence_is_not_said_in_its_place(shown: Finding) -> None:
    told = retold(finding("a.b", "is x"), shown, shadow={"a": {}})
    assert (told.path, told.rule, told.level) == ("a", "shm-present", Level.MANDATORY)
    assert told.seen == f"breaks this rule with a value that is secret and so not shown: {SECRET}"
    assert told.remedy.startswith("compare it with the rule: An engine of several ranks has shared")


def test_a_remedy_that_says_something_else_gives_way_to_the_rule() -> None:
    told = retold(finding("a", "is x", "write y"), finding("a", f"is {SECRET}", "write z"))
    assert told.seen == f"is {SECRET}"
    assert told.remedy.startswith("compare it with the rule: ")


def test_what_is_only_found_with_a_secret_hidden_is_not_said() -> None:
    assert conceal([], lambda _: [finding("a", "b")], {}) == []


def test_what_could_not_be_checked_stays_so() -> None:
    told = retold(finding("a", "was not checked, because of x", level=Level.UNKNOWN))
    assert told.seen == f"was not checked, for a reason that is secret and so not shown: {SECRET}"


def test_a_rule_that_fails_with_a_secret_hidden_says_nothing() -> None:
    def judge(_: object) -> list[Finding]:
        raise KeyError

    (told,) = conceal([finding("a", "is x")], judge, {})
    assert told.path == ""
    assert "is x" not in str(told)


@pytest.mark.parametrize(
    ("path", "reached"),
    [
        ("spec.list[1].name", "spec.list[1].name"),
        ("spec.list[1].nam", "spec.list[1]"),
        ("spec.list[2].name", "spec.list"),
        ("spec.text.more", "spec.text"),
        ("spec.dotted.key/x.y[0]", "spec.dotted.key/x"),
        ("other.spec", ""),
        ("specs", ""),
        ("spec[0]", "spec"),
        ("", ""),
    ],
)
def test_a_path_ends_where_it_leaves_what_may_be_seen(path: str, reached: str) -> None:
    shadow = {"spec": {"list": [1, {"name": 2}], "text": "x", "dotted.key/x": "", "": {"a": 1}}}
    assert retold(finding(path, "x"), shadow=shadow).path == reached


def test_a_waiver_is_shown_where_its_text_is_in_the_open() -> None:
    waiver = Waiver(until=TODAY, reason="more nodes come")
    waived = finding("a", "x", level=Level.WAIVED, waiver=waiver)
    in_the_open = {"note": f"{TODAY}  more nodes come."}
    assert retold(waived, shadow=in_the_open).waiver == waiver
    assert retold(waived, shadow={"note": SECRET}).waiver is None


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:pass@host:6443/x@y", "https://host:6443/x@y"),
        ("https://me:p@ss@host", "https://host"),
        ("https://host", "https://host"),
        ("me@host", "me@host"),
    ],
)
def test_an_address_is_shown_without_its_login(address: str, shown: str) -> None:
    assert without_login(address) == shown


# What no sentence of ours holds: any four letters of these in a row come from a secret.
TOKENS = st.text(alphabet="jkqvwxz", min_size=6, max_size=12)
NUMBERS = st.sampled_from([73918, 7391846, 73918462734])
NUMBER = "73918"
OPTIONS = ("-tp", "--max-model-len", "--nnodes", "--config", "--quarz", "--data-parallel-size=")
STATED = st.builds("{} {}".format, st.sampled_from(OPTIONS), TOKENS)
LINES = st.builds("vllm serve {} {} --seed {}".format, TOKENS, STATED, TOKENS)
SECRETS = st.one_of(
    TOKENS,
    NUMBERS,
    NUMBERS.map(str),
    LINES,
    st.builds("https://{}:{}@{}.example/{}".format, TOKENS, TOKENS, TOKENS, TOKENS),
    STATED,
    st.builds("2099-01-01 {}".format, TOKENS),
    st.lists(TOKENS | LINES, max_size=3),
    st.dictionaries(TOKENS, TOKENS | NUMBERS, max_size=2),
)


@cache
def cases() -> list[Args]:
    """Give the objects of all cases of rules, by name, one or a whole stack."""
    found = []
    for case in (case for rule in sorted(rule_names()) for case in read_cases(rule)):
        bodies = documents(case.base) if case.base else []
        if not bodies or case.before is not None:
            continue
        named = {str(body.get("metadata", body).get("name")): body for body in bodies}
        made = changed(named, case.set) if len(bodies) > 1 else {"it": changed(bodies[0], case.set)}
        if all("apiVersion" in body for body in made.values()):
            found.append(made)
    return found


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """List every place in a tree, those of the identity of objects left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if key not in {"apiVersion", "kind"}:
            yield (*at, key)
            if isinstance(item, dict | list):
                yield from places(item, (*at, key))


def put(tree: Any, at: Place, make: Callable[[Any], Any]) -> None:
    """Replace what stands at a place, unless nothing does any more."""
    try:
        for key in at[:-1]:
            tree = tree[key]
        tree[at[-1]] = make(tree[at[-1]])
    except (KeyError, IndexError, TypeError):
        return


def beside(secret: object, held: object) -> str:
    return f"{held} {secret}"


def instead(secret: object, _: object) -> object:
    return secret


def apart(value: Any) -> Any:
    """Copy a tree; an anchor of YAML puts one object at several places, of which one is sealed."""
    if isinstance(value, dict):
        return {key: apart(item) for key, item in value.items()}
    return [apart(item) for item in value] if isinstance(value, list) else value


@st.composite
def sealed(draw: st.DrawFn) -> tuple[Args, str]:
    """Draw objects with secrets in them, some of which mark a list or a map around one value."""
    bodies = apart(draw(st.sampled_from(cases())))
    every = [at for at in places(bodies) if len(at) > 1]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    planted = [draw(SECRETS) for _ in chosen]
    for at, secret in zip(chosen, planted, strict=True):
        added = isinstance(secret, str) and draw(st.booleans())
        put(bodies, at, partial(beside if added else instead, secret))
    marked = [at[: draw(st.integers(2, len(at)))] for at in chosen]
    for at in sorted(marked, key=len, reverse=True):
        put(bodies, at, Sealed)
    return bodies, repr(planted)


def check_all(bodies: Mapping[str, Any]) -> list[Finding]:
    """Check objects one by one and together, as policies do."""
    alone = partial(check_manifest, today=TODAY)
    found = [finding for body in bodies.values() for finding in check_sealed(alone, body)]
    return [*found, *check_sealed(partial(check_objects_together, today=TODAY), bodies)]


def weights(findings: list[Finding]) -> set[tuple[str, Level]]:
    return {(finding.rule, finding.level) for finding in findings}


@pytest.mark.property
@settings(max_examples=120, deadline=None)
@given(sealed())
def test_no_piece_of_a_secret_is_shown_and_all_that_is_wrong_is_told(
    drawn: tuple[Args, str],
) -> None:
    bodies, planted = drawn
    told = check_all(bodies)
    text = "\n".join(f"{each} {each.fixes}" for each in told)
    pieces = [word[i : i + 4] for word in re.findall("[jkqvwxz]{6,}", planted)
              for i in range(len(word) - 3)]  # fmt: skip
    assert not [piece for piece in (*pieces, NUMBER) if piece in text]
    assert weights(told) == weights(check_all(opened(bodies)))


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(cases()), st.data())
def test_any_value_may_be_secret_and_nothing_more_or_less_is_found(
    bodies: Args, data: st.DataObject
) -> None:
    found = weights(check_all(bodies))
    tree = copy.deepcopy(bodies)
    put(tree, data.draw(st.sampled_from([at for at in places(tree) if len(at) > 1])), Sealed)
    assert weights(check_all(tree)) == found
    # Nothing to check with is a fault of none of the rules.
    assert all(str(each) for each in check_all(hidden(tree)))
