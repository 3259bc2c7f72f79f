"""What stands in a queue of the same stack, in a preview before that queue is there.

Volcano's webhooks refuse a PodGroup whose queue, and a Queue whose parent, does not exist, and
Pulumi's provider asks them in a preview as well: its dry runs go to the cluster. It asks nothing
of an object that is not known whole, so the name of a queue is unknown until the queue is made.

Source: Volcano v1.14.1 pkg/webhooks/admission/podgroups/validate and queues/validate;
pulumi-kubernetes v4.25 provider/pkg/provider/provider.go Create.
"""

from collections.abc import Mapping
from typing import Any, cast

import pulumi

from kthena_components.resources.components import Queue

_NAMED_IN = {
    "kubernetes:scheduling.volcano.sh/v1beta1:PodGroup": "queue",
    "kubernetes:scheduling.volcano.sh/v1beta1:Queue": "parent",
}
"""Field of `spec` that names a queue, by type."""


def tie_to(queues: Mapping[str, Queue]) -> pulumi.ResourceTransformation:
    """Give a transformation that takes the names of these queues from their components."""

    def tie(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        field = _NAMED_IN.get(args.type_)
        if field is None:
            return None
        spec = cast("Mapping[str, Any]", args.props["spec"])
        queue = queues.get(spec.get(field, ""))
        if queue is None:
            return None
        spec = {**spec, field: queue.name}
        return pulumi.ResourceTransformationResult({**args.props, "spec": spec}, args.opts)

    return tie
