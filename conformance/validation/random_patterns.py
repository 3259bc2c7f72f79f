"""Random regular expressions, some of which Go rejects."""
# ruff: noqa: E501 - long lines keep the tables of values readable

import random

_BITS = (
    "^", "$", "a", "(", ")", "[", "]", "*", "+", "?", "{2}", "{1001}", "{2,1}", "{,3}", "{", "}", "1", ",", "|", ".", "-",
    "(?:", "(?P<n>", "(?<m>", "(?i)", "(?-s:", "(?=", "\\", "\\d", "\\pL", "\\p{Lu}", "\\1", "\\12", "\\x41", "\\Q", "\\E",
    "[:alpha:]", "[:x:]", "[^", "a-z", "z-a", "\\b", "\\z", "\\Z", "_", "é", "(a{40}){26}", "(a{2}){500}",
)  # fmt: skip


def pattern_of(draw: random.Random) -> str:
    """Return a valid or invalid regular expression."""
    if draw.random() < 0.5:
        return draw.choice(PATTERNS)
    return "^" + "".join(draw.choice(_BITS) for _ in range(draw.randint(1, 6))) + "$"


PATTERNS = (
    "^a$", "a", "", "^(a$", "^a)$", "^[a$", "^*$", "^a{2,1}$", "^a(?=b)$", "^(a)\\1$", "^(?P<n>a)$", "^\\d$",
    "^\\pL$", "^(?i)a$", "^a++$", "^(?#x)a$", "^a{1001}$", "^\\q$", "^(?<n>a)$", "^\\C$", "^\\Aa\\z$", "^[[:alpha:]]$",
    "^a**$", "^(?>a)$", "^\\u0041$", "^[^]a]$", "^[]$", "^(?x) a$", "^x{,3}$", "^\\Z$", "^[z-a]$", "^\\x{41}$", "^(?P=n)$",
    "^a|b$", "(^a$)", "^\\Qa$", "^\\8$",
)  # fmt: skip
