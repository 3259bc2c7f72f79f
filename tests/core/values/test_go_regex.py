"""Which patterns Go reads. Each verdict here is Go's own, as Volcano's webhook gave it."""

from kthena_components.core.values.regex import trouble_in_go
from tests.support.for_each import for_each

READ = (
    r"^a$", r"^(?P<n>a)(?P<n>b)$", r"^(?<n>a)$", r"^\pL\p{Greek}\PN$", r"^(?i)a(?-s:b)$",
    r"^a{1000}$",
    r"^\Qa(b\E$", r"^[]a]$", r"^[^]a]$", r"^[a&&b-]$", r"^[[:alpha:][:^digit:]]$", r"^x{,3}$",
    r"^{$", r"^a{$",
    r"^\012\12\x41\x{1F600}$", r"^[\d-z]$", r"^\Aa\z\b$", r"^a??$", r"^()$", r"^a{0}$", r"^\-\_\/$",
    r"^(?i)*$",
    r"^[[:^]$", r"^[\]]$", r"^*$", r"^[\pL]$", r"^(?)$", r"^[\x41-\x5a\n-\r]$", r"^(a{500}){2}$",
)  # fmt: skip
NOT_READ = {
    r"^(a$": "a '(' is not closed",
    r"^a)$": "a ')' closes nothing",
    r"^[a$": "a '[' is not closed",
    r"^[": "a '[' is not closed",
    r"^a**$": "'*' repeats a repetition",
    r"^a{2}{3}$": "'{3}' repeats a repetition",
    r"^(*a)$": "'*' has nothing to repeat",
    r"^|+$": "'+' has nothing to repeat",
    r"^a{2,1}$": "'{2,1}' is not a count of repetitions up to 1000",
    r"^a{1001}$": "'{1001}' is not a count of repetitions up to 1000",
    r"^(a{500}){3}$": "'{3}' makes more than 1000 repetitions",
    r"^(((a{30}){30}){30})$": "'{30}' makes more than 1000 repetitions",
    r"^(?=a)$": "'(?=' is not valid in Go",
    r"^(?>a)$": "'(?>' is not valid in Go",
    r"^(?x)a$": "'(?x' is not valid in Go",
    r"^(?#x)a$": "'(?#' is not valid in Go",
    r"^(?P=n)$": "'(?P' is not valid in Go",
    r"^(?P<é>x)$": "'(?P' is not valid in Go",
    r"^(?-)$": "'(?-' is not valid in Go",
    r"^(?": "'(?' is not valid in Go",
    r"^\q$": r"'\q' is not valid in Go",
    r"^\1$": r"'\1' is not valid in Go",
    r"^\é$": r"'\é' is not valid in Go",
    r"^\x4$": r"'\x' is not valid in Go",
    "^\\": "'\\' is not valid in Go",
    r"^\p{Foo}$": r"'\p{Foo}' is not a class of characters",
    r"^[[:foo:]]$": "'[:foo:]' is not a class of characters",
    r"^[z-a]$": "'z-a' is not a range",
    r"^[a-\d]$": r"'\d' is not valid in Go",
    r"^[\b]$": r"'\b' is not valid in Go",
    r"^[\Qa]$": r"'\Q' is not valid in Go",
}


@for_each("pattern", READ)
def test_go_reads_it(pattern: str) -> None:
    assert trouble_in_go(pattern) == ""


@for_each(("pattern", "why"), NOT_READ.items())
def test_go_does_not_read_it(pattern: str, why: str) -> None:
    assert trouble_in_go(pattern) == why
