"""What Grove tells the pods of its cliques, for `convert`.

Source: ai-dynamo/grove operator/api/common/constants/constants.go, and
operator/internal/controller/podclique/components/pod/pod.go.
"""

import re

from kthena_components.core.plan.controller_variables import Told, reference
from kthena_components.core.values.read import is_name
from kthena_components.systems.grove.facts import GROUP_PODS, facts
from kthena_components.systems.grove.view import CliqueSet

_GROUP = "-".join(map(reference, ("GROVE_PCSG_NAME", "GROVE_PCSG_INDEX")))
_DOMAIN = reference("GROVE_HEADLESS_SERVICE")


def tells(view: CliqueSet) -> Told:
    """Return the number of a pod in its clique, and the address of the leader's."""
    leaders = {engine.path for engine in facts(view).engines}
    names = [c.name for c in view.cliques if is_name(c.name) and view.object.at(c.path) in leaders]
    return Told(
        size=(GROUP_PODS,),
        ordinal=("GROVE_PCLQ_POD_INDEX",),
        addresses=tuple(
            rf"{_GROUP}-{re.escape(str(name))}-0\.{_DOMAIN}"
            for name in names
            if name in view.grouped
        ),
        others=("GROVE_",),
    )
