"""Documentation of findings that are not made by rule functions of the catalogue.

They come from readers of input, from backends, from the stack program and from `convert`, in
modules that this package may not import. A test checks that each name occurs in the sources, and
that none is missing here.
"""

from collections.abc import Mapping

MANIFEST_DOCS: Mapping[str, str] = {
    "hypernode-members": """A HyperNode's members are of one kind: nodes, labels or children.

Pass: nodes gpu-1 and gpu-2.
Fail: nodes and children; no members.
Level: mandatory for the component HyperNodeTopology, advisory for a manifest.
Source: Volcano v1.14 pkg/webhooks/admission/hypernodes/validate.
Code: kthena_components/systems/volcano/view.py."""
}
"""Findings while manifests are read."""

FOLDER_DOCS: Mapping[str, str] = {
    "partial-object": """An object in a folder is complete, and not a patch or a part of a template.

Patches that a kustomization names are not read as objects. Other objects in a folder are not
checked if no pod template has containers, if an image is {}, if a workload has no selector and a
container has no image, or if a field begins with $, as orders to other programs do.

Pass: a Deployment with a selector and containers.
Fail: a Deployment whose pod template has a nodeSelector and no containers.
Level: not checked.
Source: kubernetes pkg/apis/apps/validation/validation.go and pkg/apis/core/validation/validation.go
(required fields).
Code: kthena_components/checker/unread_kinds_and_parts.py."""
}
"""Findings about objects that the user did not name, but only their folder."""

INPUT_DOCS: Mapping[str, str] = {
    "unknown-field": """Every field exists, at its place.

Pass: worker_replicas 1.
Fail: workers 1, which is not a field of a role.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "required": """Every field without a default is given.

Pass: an engine with kind, image and model.
Fail: an engine without model.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "type": """A value has the field's type: a number is not a string, and a string is not a number.

Pass: replicas 2.
Fail: replicas "2"; a map with a key that is not a string.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "range": """A number is within the bounds of its field.

Pass: replicas 0.
Fail: replicas -1.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "length": """A string or a list has a valid length: neither too short nor too long.

Pass: one role.
Fail: no roles at all.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "pattern": """A string has the format that its field requires, such as the format of a name.

Pass: name chat-8b; a Secret's key HF_TOKEN.
Fail: name Chat_8B; a Secret's key "hf token".
Level: mandatory.
Source: Kubernetes, Object Names and IDs.
Code: kthena_components/core/spec/parse.py.""",
    "value": """A value is valid for its field.

Pass: max_unavailable 25%.
Fail: max_unavailable 1.5.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "known-value": """A word is one of the values that its field accepts.

Pass: recovery_policy RoleRecreate.
Fail: recovery_policy Recreate.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "known-when-planned": """Values that determine the number of resources are known in the program.

Counts, names and positions in a tree cannot be Outputs: Pulumi must know in a preview which
resources there will be.

Pass: replicas 2; an image that is an Output.
Fail: replicas that is an Output.
Level: mandatory.
Source: Pulumi documentation, Inputs and outputs.
Code: kthena_components/core/spec/parse.py.""",
    "known-backend": """The backend exists.

Pass: backend kthena.
Fail: backend slurm.
Level: mandatory.
Code: kthena_components/compiler/compile.py.""",
    "backend-loss": """The backend supports all fields that are set; none is dropped silently.

A StatefulSet only recreates the failed pod, and it cannot surge; older versions of Kthena lack
fields of newer ones; a LeaderWorkerSet places and recreates single engines; MatrixInfer ignores
maxSurge and maxUnavailable; KAITO decides how a preset is split; an
InferenceService of KServe has one role, and its pods are placed one by one; Kthena writes the pods
of a ModelBooster.

Pass: recovery_policy RoleRecreate with backend kthena.
Fail: recovery_policy RoleRecreate with backend native; max_surge with backend
kthena; partition 50% with Kthena 0.3; a network_topology with backend lws or kserve; max_surge 1
with backend matrixinfer; tensor 4 for a preset that KAITO starts with tensor 8; an overlay with
backend booster.
Level: mandatory.
Source: Kubernetes documentation, StatefulSets; the CRDs of Kthena v0.1.0 to v1.0.0;
kubernetes-sigs/lws v0.9.0 pkg/schedulerprovider and pkg/webhooks; volcano-sh/kthena
e4fb6663 pkg/infer-controller; kaito-project/kaito v0.11.0 pkg/workspace; kserve
v0.20.0 pkg/controller/v1beta1/inferenceservice.
Code: kthena_components/core/plan/limits.py.""",
    "booster-defaults": """A serving with backend booster gets pods of Kthena's templates.

They lack most production defaults of the other backends, and no field asks for them. A change of
its replicas recreates all pods, because a label of the pods is a hash of the whole backend.

Pass: backend kthena.
Fail: backend booster.
Level: advisory.
Source: Kthena v1.0.0 pkg/model-booster-controller/convert/templates and
convert/model_serving.go.
Code: kthena_components/systems/booster/limits.py.""",
    "backend-options": """The options of a backend fit the serving, and engines can start with them.

Pass: backend lws, subgroups of 2 pods in engines of 4.
Fail: subgroups of 3 pods in engines of 5; exclusive_topology in a gang, because
LWS creates the workers only after Volcano has scheduled their leader alone; backend kaito without
nodes; backend kserve without storage_uri for an engine of several pods.
Level: mandatory.
Source: kubernetes-sigs/lws v0.9.0 pkg/webhooks/leaderworkerset_webhook.go and
pkg/controllers/pod_controller.go; kaito-project/kaito v0.11.0 api/v1beta1; kserve v0.20.0
pkg/apis/serving/v1beta1.
Code: kthena_components/core/plan/limits.py.""",
    "monitoring-metrics": """Prometheus gets the metrics of each engine of a monitored serving.

SGLang has metrics with --enable-metrics only; a role with an engine gets the option. Prometheus
finds a pod by a port that a container declares, and reads it over plain HTTP. Of other programs no
metrics are known, so their roles are not scraped.

Pass: a template that starts SGLang with --enable-metrics and --port 8080, and declares 8080.
Fail: SGLang without --enable-metrics; vLLM with --disable-log-stats or --ssl-keyfile; a --port that
no container declares.
Level: mandatory; advisory for a role without an engine beside others.
Source: vLLM v0.33.0 vllm/v1/engine/async_llm.py; SGLang v0.5.23
sglang/srt/entrypoints/http_server.py; prometheus-operator v0.93.0 pkg/prometheus/promcfg.go.
Code: kthena_components/systems/prometheus/scrapes_and_panels.py.""",
    "name-unique": """No role has the name that the native backend generates for another's replica.

Pass: roles serve, with 2 replicas, and prefill.
Fail: roles serve, with 2 replicas, and serve-1.
Level: mandatory.
Code: kthena_components/systems/native/emit.py.""",
    "requests-mirrored": """Limits come with requests; missing ones are added and reported.

Pass: limits nvidia.com/gpu 8, requests nvidia.com/gpu 8.
Fail: limits nvidia.com/gpu 8 and no requests.
Level: advisory.
Source: Volcano v1.14 pkg/scheduler/api/pod_info.go GetPodResourceRequest.
Code: kthena_components/core/plan/build.py.""",
}
"""Findings about the input of components, before there is a plan or by a backend."""


EDGE_DOCS: Mapping[str, str] = {
    "convertible": """Every object that starts engines for a backend can be read by `convert`.

Pass: a ModelServing, and a Service that selects its pods.
Fail: a StatefulSet of 3 pods whose command starts an engine on 2 pods.
Level: mandatory.
Code: kthena_components/convert/from_engines.py.""",
    "hypernode-source": """A topology is given by HyperNodes or by an inventory, not by both.

Pass: inventory and no hyper_nodes.
Fail: both of them, or neither.
Level: mandatory.
Code: kthena_components/core/topology/spec.py.""",
    "hypernode-duplicate-name": """Each HyperNode of a topology has a unique name.

Pass: rack-1 and rack-2.
Fail: rack-1 twice.
Level: mandatory.
Source: Kubernetes documentation, Object Names and IDs: a HyperNode is cluster-scoped.
Code: kthena_components/core/topology/hypernode_tree.py.""",
    "hypernode-late-value": """The names and patterns of nodes are known and can be checked.

Pass: node gpu-1.
Fail: a node whose name is an Output.
Level: not checked.
Code: kthena_components/core/topology/domains.py.""",
    "hypernode-not-read": """The members of a HyperNode have a form that is supported here.

Pass: one regexMatch.
Fail: a second regexMatch; matchExpressions.
Level: not checked.
Code: kthena_components/systems/volcano/view.py.""",
    "inventory-label-missing": """Each node of an inventory has the labels that place it.

Pass: tiers rack and spine, a node with both labels.
Fail: a node without the label of spine.
Level: mandatory.
Code: kthena_components/core/topology/spec.py.""",
    "inventory-name": """The HyperNodes of an inventory get valid, unique names.

Pass: the label values a1 and a2.
Fail: the label value "a 1"; two tiers that generate the same name.
Level: mandatory.
Source: Volcano v1.14 config/crd/volcano/bases, topology.volcano.sh_hypernodes.yaml.
Code: kthena_components/core/topology/spec.py.""",
    "inventory-node-twice": """A node occurs once in an inventory.

Pass: gpu-1 and gpu-2.
Fail: gpu-1 twice.
Level: mandatory.
Code: kthena_components/core/topology/spec.py.""",
    "stack-empty": """A stack deploys something: an empty one would delete everything.

Pass: one serving.
Fail: a config whose servings are written at the wrong depth.
Level: mandatory.
Code: kthena_components/core/plan/stack_file.py.""",
    "gpu-known": """The GPU of a stack is one of the table of GPUs.

Pass: gpu: h200; gpu: h100, POOL=h200.
Fail: gpu: h10, or two GPUs for the same pods.
Level: mandatory.
Code: kthena_components/core/plan/stack_file.py.""",
    "name-once": """Each serving, queue and Secret of a stack is defined once.

Pass: servings serving/a and serving/b.
Fail: two servings named serving/a.
Level: mandatory.
Code: kthena_components/core/plan/stack_file.py.""",
    "output-field": """A stack sets no field that its output does not use.

Pass: render_directory with output render.
Fail: kubeconfig with output render.
Level: mandatory.
Code: kthena_components/core/plan/stack_file.py.""",
    "secret-in-config": """Config that becomes manifests contains no secret value.

Pass: a config key hf_token that is secret, named in secrets.
Fail: servings as a secret value.
Level: mandatory.
Source: Pulumi documentation, Secrets.
Code: kthena_components/core/plan/stack_file.py.""",
    "secret-in-plain-text": """The config encrypts secrets: values of Secrets, kubeconfigs.

Pass: pulumi config set --secret hf_token.
Fail: pulumi config set hf_token.
Level: mandatory.
Source: Pulumi documentation, Secrets.
Code: kthena_components/core/plan/stack_file.py.""",
    "secret-missing": """A config value that a Secret names exists, and is not a field of the stack.

Pass: data HF_TOKEN: hf_token, and a config value hf_token.
Fail: data HF_TOKEN: hf_token, and no such value; data HF_TOKEN: servings.
Level: mandatory.
Code: kthena_components/resources/secrets.py.""",
    "secret-rendered": """No Secret is written to a file unless allow_plain_secrets names it.

Pass: output cluster; output render with allow_plain_secrets [hf].
Fail: output render, and a Secret that is not in allow_plain_secrets.
Level: mandatory.
Source: Kubernetes documentation, Good practices for Kubernetes Secrets.
Code: kthena_components/resources/secrets.py.""",
    "secret-unused": """A Secret names each secret value of a stack's config.

Pass: a secret value hf_token, and data HF_TOKEN: hf_token.
Fail: a secret value hf_tokn, which no Secret names.
Level: mandatory.
Code: kthena_components/resources/secrets.py.""",
    "secret-used": """No slip in a name or a namespace leaves a Secret of a stack unused.

Pass: a Secret hf-token, which pods use; a Secret that resembles none that pods use.
Fail: a Secret hf-token that no pod uses, and pods that use hf-tokn, or hf-token elsewhere.
Level: advisory: both Secrets may exist for other reasons.
Source: Kubernetes documentation, Secrets: a container waits for its Secret.
Code: kthena_components/compiler/stack_secrets.py.""",
    "kubeconfig": """The kubeconfig of a stack is readable and has credentials of its cluster.

Pass: a path, and a context that is in the file.
Fail: a missing file; a context that has no user with credentials.
Level: mandatory.
Source: Kubernetes documentation, Organizing Cluster Access Using kubeconfig Files.
Code: kthena_components/cluster/kubeconfig.py.""",
    "cluster-unreachable": """The cluster of a stack answers.

Pass: an API server that accepts a connection.
Fail: one that refuses it.
Level: mandatory; not checked if the cluster is reached through a proxy.
Code: kthena_components/resources/cluster.py.""",
    "kind-unserved": """The cluster of a stack serves the kinds that the stack creates.

Pass: backend kthena, and an API server with Kthena's ModelServing.
Fail: backend kthena on a cluster without Kthena; a gang on one without Volcano.
Level: mandatory; not checked without the extra `cluster`, or if the API server cannot be queried.
Code: kthena_components/cluster/api_kinds.py.""",
    "state-of-another-cluster": """The cluster of a stack has the objects that its state has.

Compared for one object of each Kubernetes provider: the default one, and the one of a stack file.

Pass: a StatefulSet that exists, with the uid in the state.
Fail: the state of a sandbox that was removed, on the next one.
Level: advisory; not checked without the extra `cluster`, or if the API server cannot be queried.
Source: pulumi-kubernetes v4.25 provider/pkg/provider/provider.go, Diff, which reads no cluster.
Code: kthena_components/resources/_cluster_objects.py.""",
    "object-of-another-stack": """The objects of a component do not belong to another stack.

Pass: an object without the annotation kthena-components/stack, or with this stack.
Fail: an object that states another one.
Level: advisory, in previews, for ten components; not checked without the extra `cluster`.
Source: pulumi-kubernetes v4.25 provider/pkg/await/await.go, patchForce.
Code: kthena_components/resources/_cluster_objects.py.""",
    "kthena-partition-restores": """A partition holds back groups of the size that Kthena stored.

Kthena stores the roles of a revision when it creates groups, and gives them back to the groups that
a partition holds back. If a role was scaled since, these groups get their old number of engines,
and the ModelServing does not become Available.

Pass: 2 groups created with 2 engines of a role, then a partition of 1 and another image.
Fail: the same, but the role was scaled to 1 engine before the partition.
Level: mandatory, in previews and updates; not checked without the extra `cluster`, or if the API
server cannot be queried.
Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
syncRoleReplicas, checkServingGroupReady; run with Kthena 1.0.0.
Code: kthena_components/systems/kthena/view.py.""",
    "component-option": """Pulumi's options of a component reach its objects.

docs/own-program.md has a row for each option.

Pass: depends_on; ignore_changes in a transform that sets it on the StatefulSets.
Fail: ignore_changes, which Pulumi applies to the component; protect, if an update replaces objects.
Level: mandatory.
Source: run with pulumi 3.259, tests/pulumi/test_options.py.
Code: kthena_components/resources/_call.py.""",
    "placement-fits": """The pods of a stack fit into its cluster after a change as they did before.

`review --inventory` asks it of the groups that a change makes or that fitted before. The policies
ask it of all groups if their config names an inventory; without a level, it is advice then. A
snapshot of the cluster that is older than a week is advice.

Pass: a second group of 2 pods of 8 GPUs, and 2 free nodes of 8 GPUs in a rack.
Fail: the same group, and no rack with 2 free nodes.
Level: mandatory, advisory in dev and staging.
Source: Volcano v1.14 pkg/scheduler/actions/allocate.
Code: kthena_components/placement/place.py.""",
    "policy-config": """The config of a policy is valid; otherwise each finding keeps its own level.

A release of pulumi-policy that does not mark secret values is also reported under this name: then
no value is shown.

Pass: environment prod.
Fail: environment prd; gpuBudget "many"; two policies of a pair with different configs.
Level: mandatory, or the level of the configured policy.
Code: kthena_components/policies/pack.py.""",
    "rule-fault": """Every rule completes; a failure in one of them hides no other finding.

The finding names the failed rule, or the step, such as reading the object, and the place. `check`
and `review` then exit with status 2. A level for all rules (*) does not apply to it.

Pass: any object.
Fail: an object at which a rule of this package fails; please report it.
Level: not checked.
Code: kthena_components/core/findings.py.""",
}
"""Findings about a stack, a topology or a policy."""
