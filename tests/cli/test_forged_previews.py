"""A comment leads nowhere, whatever a program of the branch writes into the events of its preview.

The summary of a job and the artifact show the comment as `review` writes it.
"""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.levels import Levels
from kthena_components.cli.review.command import check_updates
from kthena_components.cli.review.comment import write_comment
from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import reviewed
from tests.cli.previews import SERVING, events, message, row, serving, step, urn, violation
from tests.cli.test_references import BETWEEN, FORMS, leads_nowhere

TODAY = date(2026, 6, 30)
texts = st.lists(st.sampled_from((*FORMS, *BETWEEN)), min_size=1, max_size=4).map("".join)


def forged(text: str) -> str:
    """Write a preview with a string wherever a string may be."""
    policy = violation(f"{text} [{text}]", urn(text, text))
    policy["policyEvent"]["policyName"] = text
    more = violation("no rule is named", SERVING)
    more["policyEvent"]["policyName"] = text
    names = row(serving=text, namespace=text, role=text, backend=text)
    deployment = urn("kubernetes:apps/v1:Deployment", text)
    fields = {text: "update", f"{text}.x": "update"}
    return events(
        serving([row(serving=text)], [names]),
        step("create", urn(text, text), None, {text: text}),
        step("update", deployment, {text: "a"}, {text: "b"}, fields),
        policy, more, message(text), message(f"{text} [image-pinned]"), message(text, "warning"),
        result="failed",
    )  # fmt: skip


@given(text=texts)
def test_a_forged_preview_leads_nowhere(text: str) -> None:
    preview = parse_preview("prod", forged(text))
    stack = reviewed(preview, check_updates(preview, Levels(), TODAY))
    comment = write_comment([stack], [text], first=[("A", text)])
    assert "\0" not in comment
    leads_nowhere(comment)
