"""How the paths that a branch changes are sorted, and what of a weaker judge is told."""

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.cli.base_waivers import BaseWaivers
from kthena_components.cli.branch import Branch, Changed, Layout, named, sort_branch
from kthena_components.cli.levels import read_policies
from kthena_components.cli.preview import Said, Weight
from kthena_components.cli.stack_config import StackValues
from kthena_components.judge.weakening import (
    LevelsChange,
    StackChange,
    levels_weakened,
    limits_weakened,
    waiver_new,
)

LAYOUT = Layout(prefix="stacks/Pulumi.", suffix=".yaml")
KNOWN = ("dev", "prod")
TODAY = date(2026, 1, 1)
WAIVER = "2026-12-31 the new runtime gives 8 GiB"
RULES = {"shm-present": "advisory", "world-size-equals-gpus": "mandatory"}
PROD: dict[str, dict[str, object]] = {
    "serving-rules": {"enforcementLevel": "mandatory", "environment": "prod"},
    "serving-groups": {"enforcementLevel": "mandatory", "gpuBudget": 32, "gpuTypes": ["H100"]},
}


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


def test_a_stack_file_leaves_the_judge_and_the_code_alone() -> None:
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
def test_what_judges_needs_a_person_and_no_preview(path: str) -> None:
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
def test_the_package_judges_and_runs(path: str) -> None:
    assert sort(path) == Branch(judge=(path,), stacks=KNOWN)


@pytest.mark.parametrize(
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
    assert named(["a", "b"]) == "a, b"
    assert named([*"abcdefg"]) == "a, b, c, d, e and 2 others"


def weaker(tmp_path: Path, after: object) -> list[str]:
    texts = []
    for name, content in (("before", PROD), ("after", after)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        texts.append(read_policies(path, tmp_path))
    change = LevelsChange(file="prod.json", before=texts[0], after=texts[1], rules=RULES)
    return [str(finding) for finding in levels_weakened(change)]


def test_levels_that_stay_or_rise_are_no_weakening(tmp_path: Path) -> None:
    assert weaker(tmp_path, PROD) == []
    groups = {"enforcementLevel": "mandatory", "gpuBudget": 16, "gpuTypes": ["H100"]}
    assert weaker(tmp_path, {**PROD, "serving-groups": groups}) == []


@pytest.mark.parametrize(
    ("policy", "config", "told"),
    [
        ("serving-rules", "advisory", "enforcementLevel: would be advisory, and the base has mand"),
        ("serving-rules", "disabled", "enforcementLevel: would be disabled, and the base has mand"),
        (
            "serving-rules",
            {**PROD["serving-rules"], "levels": {"world-size-equals-gpus": "disabled"}},
            "would lower the level of 1 rule: world-size-equals-gpus (mandatory → disabled)",
        ),
        (
            "serving-rules",
            {"levels": {"*": "disabled"}},
            "would lower the level of 2 rules: shm-pres",
        ),
        ("serving-groups", {**PROD["serving-groups"], "gpuBudget": 64}, "would be 64, and the bas"),
        (
            "serving-groups",
            {"gpuTypes": ["H100"]},
            "gpuBudget: would be removed, and the base has 32",
        ),
        (
            "serving-groups",
            {"gpuBudget": 32, "gpuTypes": ["H100", "A10"]},
            "gpuTypes: would allow A10 as well. Keep H100, or let a person",
        ),
        ("serving-groups", {"gpuBudget": 32}, "gpuTypes: would allow every GPU. Keep H100"),
    ],
)
def test_a_weaker_level_is_told(tmp_path: Path, policy: str, config: object, told: str) -> None:
    found = weaker(tmp_path, {**PROD, policy: config})
    assert any(told in text and text.endswith("[levels-weakened]") for text in found), found


def test_a_file_of_levels_that_goes_is_told(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text(json.dumps(PROD))
    change = LevelsChange(
        file="prod.json", before=read_policies(path, tmp_path), after=None, rules=RULES
    )
    (finding,) = levels_weakened(change)
    assert finding.seen.startswith("is deleted or invalid")


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


def test_a_waiver_counts_that_the_base_has_word_for_word(tmp_path: Path) -> None:
    text = f'waivers: {{shm-present: "{WAIVER}"}}\n'
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.yaml").write_text(text.replace("shm-present", "gang-covers-engine"))
    (tmp_path / "stack.yaml").write_text(text)
    waivers = BaseWaivers(tmp_path)

    def weight(rule: str, waiver: str) -> Weight:
        told = f"spec: has no /dev/shm. Mount one. Waived until {waiver}. [{rule}]"
        said = Said(weight=Weight.WAIVED, rule=rule, text=told)
        return next(waivers.apply([said])).weight

    assert weight("shm-present", WAIVER.replace(" ", ": ", 1)) is Weight.WAIVED
    assert weight("shm-present", "2026-12-31: the new runtime") is Weight.MANDATORY
    assert weight("shm-present", "2027-12-31: the new runtime gives 8 GiB") is Weight.MANDATORY
    assert weight("gang-covers-engine", WAIVER.replace(" ", ": ", 1)) is Weight.MANDATORY
    twice = "Waived until 2026-12-31: x. Waived until 2030-01-01: y"
    assert weight("shm-present", twice) is Weight.MANDATORY
