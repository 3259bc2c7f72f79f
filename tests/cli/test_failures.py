"""Why a preview failed, in the comment: without secrets, and without anything that leads on."""

import time
from pathlib import Path

import pytest

from kthena_components.cli.review.preview_runner import reason_of, secret_values
from tests.cli.conftest import Review
from tests.cli.previews import SERVING, cells, events, message, row, serving, urn
from tests.cli.test_review import REFUSED, deployed
from tests.support.for_each import for_each

MAP = urn("kubernetes:core/v1:ConfigMap", "c")
PROTECTED = "as it is currently marked for protection. To unprotect the resource, remove the flag"
DELETED = "because it is protected. To unprotect the resource, either remove the `protect` flag"
ABOVE = 'Traceback (most recent call last):\n  File "/srv/app/./__main__.py", line 7, in <module>\n'
LIBRARY = '  File "/venv/lib/python3.12/site-packages/sdk/client.py", line 99, in get\n    x\n'


def raised(last: str, *, above: str = "") -> str:
    return f"Program failed with an unhandled exception:\n{above}{ABOVE}    f()\n{LIBRARY}{last}\n"


@for_each(
    "text, told",
    [
        (raised("KeyError: 'replicas'"), "__main__.py:7: KeyError: 'replicas'"),
        (raised("app.OwnError: a\nb c"), "__main__.py:7: app.OwnError: a"),
        (raised("ValueError: b", above=raised("KeyError: 'a'")), "__main__.py:7: ValueError: b"),
        ("Missing required variable 'a:b'\n\tplease set", "Missing required variable 'a:b'"),
        ("Running program '/a' failed with an unhandled exception:\n<ref *1> Error: no\n    at f",
         "<ref *1> Error: no"),
        ("Running program '/a' failed with an unhandled exception:\nsomething else", ""),
        ("Traceback: of something", "Traceback: of something"),
        ("Traceback (most recent call last):\n  File", ""),
        ("", ""),
        (raised(f"OSError: {'word ' * 99}"), f"__main__.py:7: OSError: {'word ' * 58}w …"),
    ],
)  # fmt: skip
def test_the_line_of_an_exception_is_told(text: str, told: str) -> None:
    assert reason_of(text.strip(), "") == told


SECRETS = [
    "the url is https://bob:hunter2@db.example/x",
    "password=hunter2 for db", "Password: hunter2", "{'token': 'hunter2'}", '"api_key": "hunter2"',
    "the passphrase is hunter2", "Authorization: Bearer hunter2", "bearer hunter2",
    "secret: 'hun ter2'", "clientSecret=hunter2", "Basic hunter2",
    "AKIAhunter2EXAMPLE0", "got wJalrXUtnFEMIhunter2K7MDENGbPxRfiCYEXAMPLEKEY==",
    "eyJhbGciOiJIUzI1NiJ9hunter2.eyJzdWIiOiIxMjM0NTY3ODkwIn0hunter2.0123456789abcdefhunter2",
    "hf_abcdefghijhunter2klm", "-----BEGIN PRIVATE KEY----- hunter2",
    "0123abcd-0123-4567-89ab-0123456789ab",
]  # fmt: skip


@for_each("text", SECRETS)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    for told in (reason_of(raised(f"ValueError: {text}"), ""), reason_of(text, "")):
        assert "[secret]" in told
        for part in ("hunter2", "hun ter2", "ter2", "4567"):
            assert part not in told, told


@for_each(
    "text",
    [
        "no pods of meta-llama/Llama-3.1-405B-Instruct-FP8 in 4 racks",
        "the image vllm/vllm-openai:v0.33.0 has no tensor_parallel_size",
        "no module named 'kthena_components.resources'",
        "the secret is missing, and the token was not found",
        "HyperNode rack-0a1b and Service default/llama-8b-0-serve-0",
    ],
)
def test_usual_words_stay(text: str) -> None:
    assert reason_of(raised(f"ValueError: {text}"), "") == f"__main__.py:7: ValueError: {text}"


def test_a_protected_resource_has_a_remedy(review: Review) -> None:
    replaced = message(f'unable to replace resource "{MAP}"\n{PROTECTED}', urn=MAP)
    removed = message(f'Preview failed: resource "{MAP}" cannot be deleted\n{DELETED}', urn=MAP)
    refused = message("spec.x: Invalid value: 'hunter2 of @team'", urn=MAP)
    ended = message("preview failed")
    ran = review(prod=events(replaced, removed, refused, refused, ended, result="failed"))
    assert ran.status == 2
    at = ran.lines.index("The preview failed with 4 errors: see the log of this job.")
    replaced_line, removed_line, refused_line = ran.lines[at + 2 : at + 5]
    assert replaced_line == (
        "- ConfigMap c is protected, and this change replaces it. Undo that part of the change, or "
        "remove the option protect from it in the program: then the same update replaces it."
    )
    assert removed_line == (
        "- ConfigMap c is protected, and this change deletes it. Keep it in the program, or first "
        "run 'pulumi up' on a program that has it without the option protect."
    )
    assert refused_line == "- ConfigMap c: its provider reports an error."
    assert "hunter2" not in ran.out


@for_each("value", ["correct horse battery", "/correct/horse+battery"])
def test_a_value_of_the_environment_is_hidden(
    review: Review, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """A value in base64 may begin as a path does."""
    monkeypatch.setenv("OF_THE_JOB", value)
    ran = review(
        prod=events(message(raised(f"ValueError: {'so ' * 90}it was {value}")), result="failed")
    )
    assert "ValueError: so so" in ran.out
    assert "correct" not in ran.out, "a value is hidden before a line is cut"


def test_a_path_of_the_environment_is_shown(tmp_path: Path) -> None:
    there = str(tmp_path)
    found = secret_values(
        {"HOME": there, "PATH": f"{there}:{there}", "KEY": f"{there}/none", "A": "x"}
    )
    assert [*found] == [f"{there}/none"]


@for_each("piece", ["a", "a1", "key=", "key is 1", "0a-", "/", "\n", ABOVE, LIBRARY, "Error:", '"'])
def test_no_error_takes_long(piece: str) -> None:
    started = time.process_time()
    reason_of(piece * (200_000 // len(piece)), "")
    assert time.process_time() - started < 1


def test_a_refused_serving_stays_in_the_table(review: Review) -> None:
    state = deployed(**{"serving/llama": row(), "chat": row(serving="chat", gpus=12)})
    Path("state.json").write_text(state)
    grown = serving([row()], [row(pods=4, gpus=32)])
    other = REFUSED.replace("'chat'", "'a|b @team'")
    told = events(grown, message(REFUSED), message(other), result="failed")
    ran = review("--state", "prod=state.json", prod=told)
    assert cells(ran.out, "serving/chat (refused, as deployed)")[-2] == "12"
    assert "(refused, new)" in ran.out
    assert "GPUs: **28 → 44 (+16), plus 1 role with an unknown number**" in ran.lines
    assert "known only after the update" not in ran.out
    assert "@team" not in ran.out
    nothing = review("--state", "prod=state.json", prod=events(message(REFUSED), result="failed"))
    assert cells(nothing.out, "serving/chat (refused, as deployed)")[-2] == "12"
    assert cells(nothing.out, "serving/llama")[-2] == "16"
    assert SERVING not in nothing.out
