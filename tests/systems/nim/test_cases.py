"""Every rule of systems/nim does with each of its cases what the file says."""

from tests.rules.running import cases_beside

test_a_rule_does_what_its_case_says = cases_beside(__file__)
