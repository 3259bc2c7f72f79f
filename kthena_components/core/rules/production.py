"""The list of rules about production: PRODUCTION. They only run if they are asked for.

What they miss keeps no engine from starting. One finding per object lists what a rule misses.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, rule_name
from kthena_components.core.objects.engine_containers import Reviewed
from kthena_components.core.rules.production_pods import (
    production_cache,
    production_resources,
    production_security,
)
from kthena_components.core.rules.production_serving import (
    production_availability,
    production_labels,
    production_lifecycle,
)

PRODUCTION: tuple[Callable[[Reviewed], Iterator[Finding]], ...] = (
    production_resources,
    production_lifecycle,
    production_availability,
    production_security,
    production_labels,
    production_cache,
)
PRODUCTION_NAMES = frozenset(map(rule_name, PRODUCTION))
