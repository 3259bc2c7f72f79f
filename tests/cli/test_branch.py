"""How the paths that a branch changes are sorted, and what of a weaker judge is told."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.weakened_levels_limits_waivers import (
    StackChange,
    limits_weakened,
    waiver_new,
)
from kthena_components.cli.review.changed_paths import Branch, Changed, Layout, sort_branch
from kthena_components.cli.review.changed_paths import named as listed
from kthena_components.cli.review.stack_file_settings import StackValues
from tests.support.for_each import for_each

LAYOUT = Layout(prefix="stacks/Pulumi.", suffix=".yaml")
KNOWN = ("dev", "prod")
TODAY = date(2026, 1, 1)
WAIVER = "2026-12-31 the new runtime gives 8 GiB"


def sort(*paths: str | Changed) -> Branch:
    changes = [path if isinstance(path, Changed) else Changed(path=path) for path in paths]
    return sort_branch(changes, [LAYOUT], KNOWN)


def outside(path: str, *reads: str, everything: bool = False) -> Branch:
    change = Changed(path=path, is_outside=True)
    return sort_branch([change], [LAYOUT], KNOWN, None if everything else reads)


@pytest.mark.parametrize("path", [".github/workflows/x.yml", ".gitlab-ci.yml", "CODEOWNERS"])
def test_the_root_of_a_monorepo_decides_how_its_projects_are_checked(path: str) -> None:
    assert outside(path) == Branch(judge=(f"/{path}",))


def test_a_program_may_read_what_is_beside_it() -> None:
    beside = Branch(code=("/libs/sizes.py",), stacks=KNOWN)
    assert outside("libs/sizes.py", everything=True) == beside
    assert outside("libs/sizes.py", "tools", "libs/") == beside
    assert outside("libs/sizes.py") == Branch()
    assert outside("libs/sizes.py", "lib") == Branch()
    assert outside("libs/README.md", everything=True) == Branch()


def test_a_stack_file_of_another_project_is_not_one_of_this() -> None:
    assert outside("stacks/Pulumi.prod.yaml", "stacks").files == ()


def test_a_stack_file_leaves_the_check_and_the_code_alone() -> None:
    assert sort("stacks/Pulumi.prod.yaml") == Branch(
        stacks=("prod",), files=("stacks/Pulumi.prod.yaml",)
    )


@pytest.mark.parametrize(
    "path",
    [
        "policies/pack.py", "policies/levels/prod.json", "policies/README.md", "ci/review",
        ".github/workflows/review.yml", ".gitlab-ci.yml", ".ci/run", "CODEOWNERS",
    ],
)  # fmt: skip
def test_what_checks_needs_a_person_and_no_preview(path: str) -> None:
    assert sort(path) == Branch(judge=(path,))


@pytest.mark.parametrize(
    "path",
    [
        "requirements.lock",
        "requirements.in",
        "pyproject.toml",
        "kthena_components/core/findings.py",
    ],
)
def test_the_package_checks_and_runs(path: str) -> None:
    assert sort(path) == Branch(judge=(path,), stacks=KNOWN)


@for_each(
    "path",
    [
        "__main__.py", "Pulumi.yaml", "Pulumi.json", "yaml.py", "Makefile", ".gitattributes",
        "stacks", "stacks/other.yaml", "stacks/Pulumi..yaml", "docs", "sitecustomize.py",
        "toolchain/__main__.py", "Docs.py", ".gitmodules", "a\nb.py", "LICENSE.py", ".gitignore",
        "tests/a.py", "docs/ci/gitlab-ci.yml", "examples/x.yaml", "a.md/x.py", ".md", "bench/x.svg",
    ],
)  # fmt: skip
def test_whatever_is_not_known_to_be_harmless_is_code(path: str) -> None:
    assert sort(path) == Branch(code=(path,), stacks=KNOWN)


@pytest.mark.parametrize("path", ["README.md", "docs/ci/a.PNG", "tests/b/LICENSE", "LICENSE"])
def test_what_nothing_runs_touches_no_stack(path: str) -> None:
    assert sort(path) == Branch()


@pytest.mark.parametrize("form", ["is_executable", "is_reached", "is_link"])
def test_text_that_something_may_run_needs_a_person(form: str) -> None:
    changed = {"is_file": False} if form == "is_link" else {form: True}
    assert sort(Changed(path="docs/a.md", **changed)).code == ("docs/a.md",)


def test_a_stack_file_that_a_link_leads_to_is_code_too() -> None:
    path = "stacks/Pulumi.prod.yaml"
    assert sort(Changed(path=path, is_reached=True)) == Branch(
        stacks=KNOWN, files=(path,), code=(path,)
    )


@pytest.mark.parametrize("path", ["docs/CODEOWNERS", ".github/a.md", "x/codeowners", "Policies/a"])
def test_text_that_decides_about_checks_is_not_harmless(path: str) -> None:
    assert sort(path).judge == (path,)


@pytest.mark.parametrize(
    "path", ["stacks/Pulumi.a b.yaml", "stacks/Pulumi.$(x).yaml", "stacks/Pulumi.a/b.yaml"]
)
def test_a_name_that_no_stack_has_is_not_passed_over(path: str) -> None:
    assert sort(path).odd == (path,)


def test_a_link_is_no_stack_file() -> None:
    link = Changed(path="stacks/Pulumi.prod.yaml", is_file=False)
    assert sort(link) == Branch(odd=(link.path,))


def test_a_deleted_stack_is_told() -> None:
    assert sort(Changed(path="stacks/Pulumi.old.yaml", deleted=True)) == Branch(deleted=("old",))


@given(st.lists(st.text(st.sampled_from("abPulmi./-\n"), min_size=1, max_size=20), max_size=6))
def test_no_change_is_lost(paths: list[str]) -> None:
    branch = sort(*paths)
    told = {*branch.files, *branch.judge, *branch.code, *branch.odd}
    for path in paths:
        assert path in told or sort(path) == Branch()


def test_many_paths_are_counted() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([*"abcdefg"]) == "a, b, c, d, e and 2 others"


def stack(before: dict[str, object], after: dict[str, object]) -> StackChange:
    return StackChange(file="Pulumi.prod.yaml", before=before, after=after, today=TODAY)


def servings(**waivers: str) -> dict[str, object]:
    named = {rule.replace("_", "-"): text for rule, text in waivers.items()}
    return {"servings": [{"name": "llama", "roles": [], "waivers": named}]}


def test_a_waiver_of_the_base_stays_one() -> None:
    both = servings(shm_present=WAIVER)
    assert list(waiver_new(stack(both, both))) == []
    reworded = servings(shm_present="2026-12-31 until the runtime is new")
    assert list(waiver_new(stack(both, reworded))) == []
    assert list(waiver_new(stack(both, servings()))) == []


def test_a_waiver_that_is_new_or_lasts_longer_is_told() -> None:
    (finding,) = waiver_new(stack(servings(), servings(shm_present=WAIVER)))
    assert str(finding) == (
        "Pulumi.prod.yaml: servings[llama].waivers.shm-present: is new in this branch and does not "
        "apply to it: waived until 2026-12-31: the new runtime gives 8 GiB. Fix what 'shm-present' "
        "reports, or let a person who may decide it approve the branch. [waiver-new]"
    )
    longer = servings(shm_present=WAIVER.replace("2026-12", "2027-12"))
    assert list(waiver_new(stack(servings(shm_present=WAIVER), longer)))


def test_a_waiver_as_an_annotation_of_a_template_is_found_too() -> None:
    annotation = {"waive.kthena-components/shm-present": WAIVER}
    deep: dict[str, object] = {"servings": [{"pod": {"metadata": {"annotations": annotation}}}]}
    assert len(list(waiver_new(stack({}, deep)))) == 1


def test_a_limit_that_rises_or_goes_is_told() -> None:
    def found(before: dict[str, object], after: dict[str, object]) -> list[str]:
        return [str(finding) for finding in limits_weakened(stack(before, after))]

    assert found({"gpu_budget": 32}, {"gpu_budget": "16"}) == []
    assert found({}, {"gpu_budget": 16}) == []
    (raised,) = found({"gpu_budget": "16"}, {"gpu_budget": 32})
    assert "gpu_budget: would be 32, and the base has 16. Write 16, or let a person" in raised
    (gone,) = found({"gpu_budget": 16}, {})
    assert "would be removed, and the base has 16" in gone
    (plain,) = found({}, {"allow_plain_secrets": ["hf-token"]})
    assert "allow_plain_secrets: would let hf-token be written in plain text as well" in plain


def test_settings_that_send_a_preview_elsewhere_are_named() -> None:
    before = StackValues(own={"context": "a", "servings": []}, others={"aws:region": "x"})
    after = StackValues(
        own={"context": "b", "kubeconfig": "k", "servings": [1]},
        others={"kubernetes:kubeconfig": "k"},
        beside={"environment": ["prod"], "encryptionsalt": "v1:x"},
    )
    assert after.moved(before) == [
        "environment", "kubeconfig", "context", "aws:region", "kubernetes:kubeconfig",
    ]  # fmt: skip
    assert before.moved(before) == []


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ({}, {"output": "render"}, []),
        ({"output": "render"}, {}, []),
        ({}, {"output": "cluster"}, ["output"]),
        ({"output": "cluster"}, {"output": "render"}, ["output"]),
        ({"output": "cluster"}, {}, ["output"]),
        ({}, {"render_directory": "../live"}, ["render_directory"]),
    ],
)
def test_where_a_stack_is_deployed_is_what_a_preview_connects_to(
    before: dict[str, object], after: dict[str, object], moved: list[str]
) -> None:
    assert StackValues(own=after).moved(StackValues(own=before)) == moved


def named(namespace: str, waivers: dict[str, object] | None = None) -> dict[str, object]:
    return {"name": "llama", "namespace": namespace, "waivers": waivers or {}}


WAIVED: dict[str, object] = {"shm-present": WAIVER}


@pytest.mark.parametrize(
    ("before", "after", "is_new"),
    [
        ({"servings": [named("a", WAIVED)]}, {"servings": [named("a", WAIVED)]}, False),
        ({"servings": [named("a", WAIVED)]}, {"servings": [named("b", WAIVED)]}, True),
        ({"servings": [named("a", WAIVED)]}, {"servings": [named("a"), named("b", WAIVED)]}, True),
        (
            {"servings": [named("b"), named("a", WAIVED)]},
            {"servings": [named("a", WAIVED), named("b")]},
            False,
        ),
        ({"servings": [named("default", WAIVED)]}, servings(shm_present=WAIVER), False),
        ({"models": {"x": named("a", WAIVED)}}, {"models": {"x": named("b", WAIVED)}}, True),
        ({"namespace": "a", "waivers": WAIVED}, {"namespace": "b", "waivers": WAIVED}, True),
        ({}, {"objects": json.dumps([named("a", WAIVED)])}, True),
        ({}, {"other:servings": [named("a", WAIVED)]}, True),
        ({}, {"servings": [named("a", {"shm-present": {"secure": "v1:x"}})]}, True),
        ({}, {"servings": [named("a", {"shm-present": WAIVER.encode()})]}, True),
        ({}, {"servings": {"secure": "v1:x"}}, True),
        ({}, {"servings": [{"name": "llama", "waivers": {"secure": "v1:x"}}]}, True),
        ({"servings": {"secure": "v1:x"}}, {"servings": {"secure": "v1:x"}}, False),
        ({"servings": {"secure": "v1:x"}}, {"servings": {"secure": "v1:y"}}, True),
    ],
)
def test_a_waiver_is_for_one_object(
    before: dict[str, object], after: dict[str, object], is_new: bool
) -> None:
    assert bool(list(waiver_new(stack(before, after)))) is is_new


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_waiver_of_a_manifest_is_for_its_kind(kind: str) -> None:
    annotations = {"waive.kthena-components/shm-present": WAIVER}

    def manifest(kind: str) -> dict[str, object]:
        metadata = {"name": "llama", "annotations": annotations}
        return {"objects": [{"kind": kind, "metadata": metadata}]}

    found = list(waiver_new(stack(manifest("StatefulSet"), manifest(kind))))
    assert bool(found) is (kind != "StatefulSet")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (8.0, 999, "gpu_budget: was not compared, because the base has 8.0, which is not a count"),
        ("08", 999, "was not compared, because the base has '08'"),
        ("1e1", 999, "was not compared, because the base has '1e1'"),
        (b"8", 999, "was not compared, because the base has b'8'"),
        ({"secure": "v1:x"}, 999, "was not compared, because the base has an encrypted value"),
        (True, 1, "was not compared, because the base has True"),
        (None, 1, "was not compared, because the base has None"),
        (8, 8.5, "would be 8.5, which is not a count, and the base has 8. Write 8"),
        (8, "0x10", "would be '0x10', which is not a count"),
        (8, {"secure": "v1:x"}, "would be an encrypted value, which is not a count"),
        (8, "\uff19", "which is not a count"),
        (8, None, "would be None, which is not a count"),
        (8.0, 8.0, None),
        ({"secure": "v1:x"}, {"secure": "v1:x"}, None),
        ("8", 8, None),
    ],
)
def test_a_budget_that_cannot_be_read_is_never_passed_over(
    before: object, after: object, told: str | None
) -> None:
    found = list(map(str, limits_weakened(stack({"gpu_budget": before}, {"gpu_budget": after}))))
    assert len(found) == (told is not None), found
    assert told is None or told in found[0]


ABSENT = object()
GPUS: dict[str, tuple[object, object, str | None]] = {
    "the same": ("h100", "h100", None),
    "another name of it": ("h100", "NVIDIA-H100-80GB-HBM3", None),
    "a smaller one": ("h200", "h100", None),
    "a new one": (ABSENT, "h200", None),
    "a larger one": (
        "h100",
        "h200",
        "would be NVIDIA H200 with 140.4 GiB, and the base has NVIDIA H100",
    ),
    "none": ("h100", ABSENT, "would name no GPU, and the base has NVIDIA H100 with 79.65 GiB"),
    "a larger one of a pool": (
        "h100, a=l4",
        "h100, a=h100",
        "would be NVIDIA H100 with 79.65 GiB for 'a'",
    ),
    "a larger one of a new pool": ("h100", "h100, a=h200", "for 'a', and the base has NVIDIA H100"),
    "a smaller one of a new pool": ("h100", "h100, a=l4", None),
    "a pool that is left to the default": ("h100, a=h200", "h100", None),
    "a pool that is left to a larger default": (
        "h200, a=h100",
        "h200",
        "for 'a', and the base has",
    ),
    "an unknown one": ("h100", "h10", "would be 'h10', which names no known GPU"),
    "an encrypted one": ("h100", {"secure": "v1:x"}, "would be an encrypted value, which names no"),
    "the base has an unknown one": ("h10", "h100", "was not compared, because the base has 'h10'"),
    "a list": ("h100", ["h100"], "would be ['h100'], which names no known GPU"),
}


@for_each("name", GPUS)
def test_a_gpu_with_more_memory_waits_for_a_person(name: str) -> None:
    before, after, told = GPUS[name]
    sides = ({} if gpu is ABSENT else {"gpu": gpu} for gpu in (before, after))
    found = list(map(str, limits_weakened(stack(*sides))))
    assert len(found) == (told is not None), found
    assert told is None or told in found[0]


@pytest.mark.parametrize("after", ["hf-token", {"secure": "v1:x"}, [b"x"], {"a": 1}])
def test_names_of_plain_secrets_that_cannot_be_read_are_told(after: object) -> None:
    (found,) = limits_weakened(stack({}, {"allow_plain_secrets": after}))
    assert "which is not a list of names" in found.seen
    same = stack({"allow_plain_secrets": after}, {"allow_plain_secrets": after})
    assert list(limits_weakened(same)) == []


def test_settings_that_may_start_programs_or_send_secrets_wait_for_a_person() -> None:
    before = StackValues(others={"aws:region": "x", "kubernetes:context": "a"})
    assert before.starting(before) == []
    after = StackValues(
        own={"kubeconfig": "docs/k.yaml", "x": 1},
        others={
            "aws:region": "x", "aws:profile": "evil", "kubernetes:context": "b",
            "kubernetes:helmReleaseSettings": {"pluginsPath": "docs"},
            "kubernetes:kubeconfig": {"secure": "v1:y"}, "kubernetes:namespace": "a",
            "kubernetes:pluginDownloadURL": "https://example.org", "kubernetes:version": "9.0.0",
            "kubernetes:unknown": "a", "pulumi:autonaming": {"mode": "verbatim"},
        },
        beside={
            "environment": {"values": {"environmentVariables": {"PATH": "docs"}}},
            "secretsprovider": "awskms://k", "encryptionsalt": "v1:x",
        },
    )  # fmt: skip
    assert after.starting(before) == [
        "secretsprovider", "environment", "kubeconfig", "aws:profile",
        "kubernetes:helmReleaseSettings", "kubernetes:kubeconfig", "kubernetes:pluginDownloadURL",
        "kubernetes:unknown", "kubernetes:version",
    ]  # fmt: skip
