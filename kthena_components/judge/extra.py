"""Documentation of findings that no function of the catalogue makes: those at the edges.

They come from readers of input, from backends, and from what runs a stack, in modules that this
package may not import. A test holds the names here equal to those that the sources give.
"""

from collections.abc import Mapping

MANIFEST_DOCS: Mapping[str, str] = {
    "hypernode-members": """A HyperNode's members are of one kind: nodes, labels or children.

Pass: nodes gpu-1 and gpu-2.
Fail: nodes and children; no members.
Level: mandatory for the component HyperNodeTopology, advisory for a manifest.
Source: Volcano v1.14 pkg/webhooks/admission/hypernodes/validate.""",
    "partial-object": """An object below a folder is whole, and no patch or part of a template.

Patches that a kustomization names are known by that. Of the others that are only found below a
folder, those without containers, and workloads without both a selector and an image, are not
judged.

Pass: a Deployment with a selector and containers.
Fail: a Deployment whose pod template has a nodeSelector and no containers.
Level: not checked.
Source: kubernetes pkg/apis/apps/validation/validation.go and pkg/apis/core/validation/validation.go
(required fields).""",
}
"""What is said of manifests while they are read."""

INPUT_DOCS: Mapping[str, str] = {
    "unknown-field": """A field is one that there is, in the place where it stands.

Pass: worker_replicas 1.
Fail: workers 1, which is no field of a role.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "required": """What has no default is given.

Pass: an engine with kind, image and model.
Fail: an engine without model.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "type": """A value is of the field's type: a number is no text, and a text no number.

Pass: replicas 2.
Fail: replicas "2"; a mapping with a key that is no text.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "range": """A number is within the bounds of its field.

Pass: replicas 0.
Fail: replicas -1.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "length": """A text or a list is neither empty where it must not be nor longer than it may be.

Pass: one role.
Fail: no roles at all.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "pattern": """A text has the form that its field asks for, such as that of a name.

Pass: name chat-8b; a Secret's key HF_TOKEN.
Fail: name Chat_8B; a Secret's key "hf token".
Level: mandatory.
Source: kthena_components/core/spec/model.py; Kubernetes documentation, Object Names and IDs.""",
    "value": """A value is one that its field can mean.

Pass: max_unavailable 25%.
Fail: max_unavailable 1.5.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "known-value": """A word is one of those that its field knows.

Pass: recovery_policy RoleRecreate.
Fail: recovery_policy Recreate.
Level: mandatory.
Source: kthena_components/core/spec/model.py.""",
    "known-when-planned": """What decides how many resources there are is known in the program.

Counts, names and places in a tree cannot wait for an Output: Pulumi must know in a preview which
resources there will be.

Pass: replicas 2; an image that is an Output.
Fail: replicas that is an Output.
Level: mandatory.
Source: Pulumi documentation, Inputs and outputs.""",
    "known-backend": """The backend is one that there is.

Pass: backend kthena.
Fail: backend lws.
Level: mandatory.
Source: kthena_components/compiler/compile.py.""",
    "backend-loss": """The backend can do what is asked for; nothing is dropped on the way.

A StatefulSet recreates the pod that failed and nothing else, and it cannot surge; older versions of
Kthena lack fields of newer ones.

Pass: recovery_policy RoleRecreate with backend kthena.
Fail: recovery_policy RoleRecreate with backend native; max_surge; partition 50% with Kthena 0.3.
Level: mandatory.
Source: Kubernetes documentation, StatefulSets; the CRDs of Kthena v0.1.0 to v1.0.0.""",
    "name-unique": """No role has the name that the native backend gives to a replica of another.

Pass: roles serve, with 2 replicas, and prefill.
Fail: roles serve, with 2 replicas, and serve-1.
Level: mandatory.
Source: kthena_components/core/naming.py.""",
    "requests-mirrored": """Limits have requests beside them; else requests are added and told.

Pass: limits nvidia.com/gpu 8, requests nvidia.com/gpu 8.
Fail: limits nvidia.com/gpu 8 and no requests.
Level: advisory.
Source: Volcano v1.14 pkg/scheduler/api/pod_info.go GetPodResourceRequest.""",
}
"""What is said of the input of components before there is a plan, or by a backend."""

EDGE_DOCS: Mapping[str, str] = {
    "hypernode-source": """A topology is given by its HyperNodes or by an inventory, not by both.

Pass: inventory and no hyper_nodes.
Fail: both of them, or neither.
Level: mandatory.
Source: kthena_components/core/topology/spec.py.""",
    "hypernode-duplicate-name": """Each HyperNode of a topology has a name of its own.

Pass: rack-1 and rack-2.
Fail: rack-1 twice.
Level: mandatory.
Source: Kubernetes documentation, Object Names and IDs: a HyperNode belongs to no namespace.""",
    "hypernode-late-value": """The names and patterns of nodes are judged where they are known.

Pass: node gpu-1.
Fail: a node whose name is an Output.
Level: not checked.
Source: kthena_components/core/topology/spec.py.""",
    "hypernode-not-read": """The members of a HyperNode are of the forms that are read here.

Pass: one regexMatch.
Fail: a second regexMatch; matchExpressions.
Level: not checked.
Source: kthena_components/systems/volcano/view_hyper_node.py.""",
    "inventory-label-missing": """Each node of an inventory has the labels that say where it stands.

Pass: tiers rack and spine, a node with both labels.
Fail: a node without the label of spine.
Level: mandatory.
Source: kthena_components/core/topology/spec.py.""",
    "inventory-name": """The HyperNodes of an inventory get names that are legal, and each its own.

Pass: the label values a1 and a2.
Fail: the label value "a 1"; two tiers that make the same name.
Level: mandatory.
Source: Volcano v1.14 config/crd/volcano/bases, topology.volcano.sh_hypernodes.yaml.""",
    "inventory-node-twice": """A node stands once in an inventory.

Pass: gpu-1 and gpu-2.
Fail: gpu-1 twice.
Level: mandatory.
Source: kthena_components/core/topology/spec.py.""",
    "stack-empty": """A stack deploys something: an empty one would take everything down.

Pass: one serving.
Fail: a config whose servings are written at the wrong depth.
Level: mandatory.
Source: kthena_components/core/plan/stack.py.""",
    "name-once": """Each serving, queue and Secret of a stack is written once.

Pass: servings serving/a and serving/b.
Fail: two servings named serving/a.
Level: mandatory.
Source: kthena_components/core/plan/stack.py.""",
    "output-field": """A stack gives no field that its output does not use.

Pass: render_directory with output render.
Fail: kubeconfig with output render.
Level: mandatory.
Source: kthena_components/core/plan/stack.py.""",
    "secret-in-config": """No secret value stands in config that becomes manifests.

Pass: a config key hf_token that is secret, named in secrets.
Fail: servings as a secret value.
Level: mandatory.
Source: Pulumi documentation, Secrets.""",
    "secret-in-plain-text": """The config encrypts what is secret: values of Secrets, kubeconfigs.

Pass: pulumi config set --secret hf_token.
Fail: pulumi config set hf_token.
Level: mandatory.
Source: Pulumi documentation, Secrets.""",
    "secret-missing": """A config value that a Secret names is there, and is a value of its own.

Pass: data HF_TOKEN: hf_token, and a config value hf_token.
Fail: data HF_TOKEN: hf_token, and no such value; data HF_TOKEN: servings.
Level: mandatory.
Source: kthena_components/resources/secrets.py.""",
    "secret-rendered": """No Secret is written to a file unless allow_plain_secrets names it.

Pass: output cluster; output render with allow_plain_secrets [hf].
Fail: output render, and a Secret that is not in allow_plain_secrets.
Level: mandatory.
Source: Kubernetes documentation, Good practices for Kubernetes Secrets.""",
    "secret-unused": """Each secret value of a stack's config is named by a Secret.

Pass: a secret value hf_token, and data HF_TOKEN: hf_token.
Fail: a secret value hf_tokn, which nothing names.
Level: mandatory.
Source: kthena_components/resources/secrets.py.""",
    "kubeconfig": """The kubeconfig of a stack can be read and opens its cluster without asking.

Pass: a path, and a context that is in the file.
Fail: a file that is not there; a context that has no user with credentials.
Level: mandatory.
Source: Kubernetes documentation, Organizing Cluster Access Using kubeconfig Files.""",
    "cluster-unreachable": """The cluster that a stack goes to answers.

Pass: an API server that takes a connection.
Fail: one that refuses it.
Level: mandatory; not checked where the cluster is reached through a proxy.
Source: kthena_components/resources/cluster.py.""",
    "kind-unserved": """The cluster that a stack goes to knows the kinds that the stack makes.

Pass: backend kthena, and an API server with Kthena's ModelServing.
Fail: backend kthena on a cluster without Kthena; a gang on one without Volcano.
Level: mandatory; not checked without the extra `cluster`, or where the API server cannot be asked.
Source: kthena_components/cluster/api_kinds.py.""",
    "policy-config": """The config of a policy can be used; else each finding has its own level.

A release of pulumi-policy that does not tell which values are secret is told in its name too: then
no value is shown.

Pass: environment prod.
Fail: environment prd; gpuBudget "many"; two policies of a pair with different configs.
Level: mandatory, or that of the policy that it was given to.
Source: kthena_components/judge/levels.py.""",
    "rule-fault": """Every rule comes to an end; a fault in one of them hides no other finding.

It names the rule that failed, or the step, such as reading the object, and where. `check` and
`review` then end with the exit status 2. A level for all rules (*) does not hold for it.

Pass: any object.
Fail: an object at which a rule of this package fails; please report it.
Level: not checked.
Source: kthena_components/core/findings.py.""",
}
"""What is said of a stack, a topology or a policy, and by what runs them."""
