"""Whether a Kthena ModelServing, ours or anybody's, would be let into the cluster.

Each function of RULES is one rule. Its docstring is the rule in words; paths are the manifest's
own. Mandatory is what the API server or Kthena's webhook refuses, advisory what they let pass
and lose. The fields' shapes are in kthena_schema.py.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.checks.kthena_schema import BY_GROUP, BY_ROLE, GROUP_RECREATE, MODEL_SERVING
from kthena_components.core.checks.kthena_shape import (
    KTHENA_VERSIONS,
    SURGE,
    VERSION,
    age,
    first_gap,
    gap_of,
    judge_shape,
    key_text,
    not_checked,
    show,
    whole,
)
