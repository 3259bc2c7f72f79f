"""Random changes of a pod template, each to values that may be wrong: placement, volumes, hosts."""

import random

from conformance.kubernetes.random_fields import Body, Change, drawn, some

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_KEYS = ("a", "a/b", "kubernetes.io/hostname", "x y", "", "A/b", "app")
_VALUES = ("a", "x y", "", "8", "a" * 64)
_IDS = (0, 1000, -1, 2**31 - 1, 2**31)
_NAMES = ("a", "a.b", "A_B", "-a", "a" * 63, "a" * 64, "a..b", "a-")
_ADDRESSES = (
    "10.0.0.1",
    "010.0.0.1",
    "10.0.0",
    "::1",
    "fe80::1%eth0",
    "localhost",
    "",
    "10.0.0.256",
)
_MODES = (0, 0o644, 0o777, 755, 600, -1)
_PLACES = ("a", "a/b", "/a", "../a", "a/../b", "..a", "...", "")


def _expression(draw: random.Random, operators: tuple[str, ...]) -> Body:
    found: Body = {"key": draw.choice(_KEYS), "operator": draw.choice((*operators, "In", "in"))}
    if draw.random() < 0.7:
        found["values"] = draw.choices(_VALUES, k=draw.choice((0, 1, 1, 2)))
    return found


def _selector(draw: random.Random) -> Body:
    found: Body = {}
    if draw.random() < 0.7:
        found["matchLabels"] = {draw.choice(_KEYS): draw.choice(_VALUES)}
    if draw.random() < 0.5:
        found["matchExpressions"] = [_expression(draw, ("NotIn", "Exists", "DoesNotExist", "Gt"))]
    return found


def _matched(draw: random.Random, found: Body, template: Body) -> None:
    if draw.random() < 0.85:
        found["labelSelector"] = _selector(draw)
    among = ("matchLabelKeys",) if "maxSkew" in found else ("matchLabelKeys", "mismatchLabelKeys")
    for field in among:
        if draw.random() < 0.25:
            found[field] = [draw.choice(_KEYS)]
    if draw.random() < 0.5:
        template.setdefault("metadata", {})["labels"] = {"a": "b", "app": "c"}


def _nodes(draw: random.Random, template: Body, _: Body) -> None:
    operators = ("NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equals")
    term: Body = {"matchExpressions": [_expression(draw, operators)]}
    if draw.random() < 0.2:
        key = draw.choice(("metadata.name", "metadata.name", "a"))
        names = draw.choices(_NAMES, k=draw.choice((1, 1, 2)))
        term["matchFields"] = [{"key": key, "operator": "In", "values": names}]
    if draw.random() < 0.5:
        terms = draw.choice(([term], [term], []))
        affinity: Body = {_REQUIRED: {"nodeSelectorTerms": terms}}
    else:
        affinity = {_PREFERRED: [{"weight": draw.choice((0, 1, 100, 101)), "preference": term}]}
    template["spec"]["affinity"] = {"nodeAffinity": affinity}


def _pods(draw: random.Random, template: Body, _: Body) -> None:
    term: Body = {"topologyKey": draw.choice((*_KEYS, "kubernetes.io/hostname"))}
    _matched(draw, term, template)
    if draw.random() < 0.2:
        term["namespaces"] = [draw.choice(_NAMES)]
    if draw.random() < 0.2:
        term["namespaceSelector"] = _selector(draw)
    weighted = {"weight": draw.choice((0, 1, 100, 101)), "podAffinityTerm": term}
    affinity = draw.choice(({_REQUIRED: [term]}, {_PREFERRED: [weighted]}))
    template["spec"]["affinity"] = {draw.choice(("podAffinity", "podAntiAffinity")): affinity}


def _spread(draw: random.Random, template: Body, _: Body) -> None:
    found: list[Body] = []
    for _each in range(draw.choice((1, 1, 2))):
        item: Body = {
            "maxSkew": draw.choice((1, 1, 2, 0, -1)),
            "topologyKey": draw.choice(("a", "kubernetes.io/hostname", "")),
            "whenUnsatisfiable": draw.choice(("DoNotSchedule", "ScheduleAnyway", "Do")),
        }
        _matched(draw, item, template)
        item |= some(draw, 0.2, minDomains=(0, 1), nodeAffinityPolicy=("Honor", "Ignore", "honor"))
        found.append(item)
    template["spec"]["topologySpreadConstraints"] = found


def _security(draw: random.Random, template: Body, engine: Body) -> None:
    profile = drawn(draw, type=("RuntimeDefault", "Localhost", "Unconfined", "runtime"))
    profile |= some(draw, 0.4, localhostProfile=("a", "/a", "../a", " a", ""))
    kind = draw.choice(("seccompProfile", "appArmorProfile"))
    shared = some(draw, 0.3, runAsUser=_IDS, runAsGroup=_IDS, runAsNonRoot=(True, False))
    if draw.random() < 0.3:
        shared[kind] = profile
    if draw.random() < 0.5:
        own = some(draw, 0.4, privileged=(True, False), allowPrivilegeEscalation=(True, False))
        own |= some(draw, 0.3, procMount=("Default", "Unmasked", "default"))
        own |= some(draw, 0.3, capabilities=({"add": ["SYS_ADMIN"]}, {"add": ["CAP_SYS_ADMIN"]}))
        engine["securityContext"] = shared | own
        return
    own = some(draw, 0.3, fsGroup=_IDS, fsGroupChangePolicy=("OnRootMismatch", "always"))
    own |= some(draw, 0.3, supplementalGroups=([0], [-1], [2**31]))
    own |= some(draw, 0.3, supplementalGroupsPolicy=("Merge", "Strict", "merge"))
    names = draw.choices(("kernel.shm_rmid_forced", "net.core.somaxconn", "A", "a..b", "a/b"), k=2)
    own |= some(draw, 0.3, sysctls=([{"name": name, "value": "1"} for name in names],))
    template["spec"]["securityContext"] = shared | own


def _dns(draw: random.Random, template: Body, _: Body) -> None:
    searches = (["a"], ["a."], ["_a.b"], ["A"], ["."], ["a b"], ["a"] * 33, ["a_b.c"], [""])
    config = some(
        draw,
        0.6,
        nameservers=([a] for a in _ADDRESSES) if draw.random() < 0.8 else (["::1"] * 4, []),
        searches=searches,
        options=([{"name": "ndots", "value": "2"}], [{"value": "2"}], [{"name": ""}]),
    )
    template["spec"] |= some(draw, 0.5, dnsPolicy=("None", "None", "Default"))
    if draw.random() < 0.8:
        template["spec"]["dnsConfig"] = config


def _aliases(draw: random.Random, template: Body, _: Body) -> None:
    alias = {"ip": draw.choice(_ADDRESSES), "hostnames": [draw.choice(_NAMES)]}
    template["spec"]["hostAliases"] = [alias]


def _host(draw: random.Random, template: Body, engine: Body) -> None:
    template["spec"] |= some(
        draw, 0.4, hostNetwork=(True, False), hostPID=(True,), hostIPC=(True,),
        shareProcessNamespace=(True,), hostUsers=(True, False),
    )  # fmt: skip
    more: Body = {"containerPort": draw.choice((8000, 9000))}
    more |= some(draw, 0.4, hostPort=(8000, 9000), protocol=("UDP", "TCP"), hostIP=("10.0.0.1",))
    if draw.random() < 0.5:
        engine["ports"].append(more)
    else:
        other = {"name": "other", "image": "a", "ports": [more]}
        place = draw.choice(("containers", "containers", "initContainers"))
        template["spec"].setdefault(place, []).append(other)
    if draw.random() < 0.4:
        engine["ports"][0]["hostPort"] = draw.choice((8000, 9000))


def _pod_names(draw: random.Random, template: Body, _: Body) -> None:
    field = draw.choice(
        ("hostname", "subdomain", "serviceAccountName", "priorityClassName", "nodeName",
         "runtimeClassName")
    )  # fmt: skip
    template["spec"][field] = draw.choice((*_NAMES, ""))


def _gates(draw: random.Random, template: Body, _: Body) -> None:
    template["spec"] |= some(
        draw,
        0.5,
        readinessGates=([{"conditionType": key}] for key in _KEYS),
        schedulingGates=([{"name": key}] for key in ("a", "a/b", "x y")),
        activeDeadlineSeconds=(0, 1, 2**31 - 1, 2**31),
        imagePullSecrets=([{"name": name}] for name in ("a", "A_B", "")),
        terminationGracePeriodSeconds=(0, -1, 30),
    )


def _claims(draw: random.Random, template: Body, engine: Body) -> None:
    def claim() -> Body:
        source = some(draw, 0.6, resourceClaimName=_NAMES, resourceClaimTemplateName=_NAMES)
        return {"name": draw.choice(("gpus", "gpus", "A_B", "b")), **source}

    template["spec"]["resourceClaims"] = [claim() for _ in range(draw.choice((1, 1, 2)))]
    asked = [
        {"name": draw.choice(("gpus", "gpus", "b")), **some(draw, 0.3, request=("a", "b"))}
        for _ in range(draw.choice((0, 1, 1, 2)))
    ]
    engine["resources"]["claims"] = asked


def _volumes(draw: random.Random, template: Body, _: Body) -> None:
    item = drawn(draw, key=("a", "a", ""), path=_PLACES) | some(draw, 0.3, mode=_MODES)
    items = some(draw, 0.5, items=([item],)) | some(draw, 0.4, defaultMode=_MODES)
    field = some(draw, 0.7, fieldRef=[{"fieldPath": p} for p in _FILE_FIELDS])
    field |= some(draw, 0.3, resourceFieldRef=({"resource": "limits.cpu", "containerName": "a"},))
    files = {"items": [{"path": draw.choice(_PLACES), **field}]}
    token = drawn(draw, path=_PLACES) | some(draw, 0.6, expirationSeconds=(599, 600, 2**32 + 1))
    named = some(draw, 0.9, name=("a", "A", ""))
    source: Body = draw.choice(
        (
            {"emptyDir": some(draw, 0.9, sizeLimit=("1Gi", "-1", 0), medium=("Memory", "memory"))},
            {"hostPath": drawn(draw, path=("/a", "a", "/a/../b", ""))
             | some(draw, 0.6, type=("Directory", "directory", "File", "BlockDevice", ""))},
            {"configMap": named | items},
            {"secret": some(draw, 0.9, secretName=("a", "")) | items},
            {"persistentVolumeClaim": {"claimName": draw.choice(("a", "A", ""))}},
            {"nfs": drawn(draw, server=("a", "b", ""), path=("/a", "a", ""))},
            {"downwardAPI": files | some(draw, 0.3, defaultMode=_MODES)},
            {"projected": {"sources": [{"serviceAccountToken": token}]}},
            {"projected": {"sources": [{"configMap": named | items}, {"downwardAPI": files}]}},
            {"projected": {"sources": [{"secret": named | items, "downwardAPI": files}]}},
            {"csi": {"driver": draw.choice(("a.b", ""))}},
        )
    )  # fmt: skip
    if "serviceAccountToken" in str(source):
        template["spec"]["serviceAccountName"] = "a"
    template["spec"]["volumes"].append({"name": "more", **source})


_FILE_FIELDS = (
    "metadata.labels", "metadata.annotations", "metadata.name", "spec.nodeName", "status.podIP",
    "metadata.labels['a']",
)  # fmt: skip


def _mounted(draw: random.Random, template: Body, engine: Body) -> None:
    mount: Body = {"name": "shm", "mountPath": "/data"}
    mount |= some(draw, 0.3, subPath=_PLACES, subPathExpr=("$(A)/b", "/$(A)", ".."))
    mount |= some(draw, 0.3, mountPropagation=("None", "HostToContainer", "Bidirectional", "none"))
    mount |= some(draw, 0.2, recursiveReadOnly=("Enabled", "IfPossible", "enabled"))
    mount |= some(draw, 0.5, readOnly=(True, False))
    engine["volumeMounts"].append(mount)
    if draw.random() < 0.3:
        engine["securityContext"] = {"privileged": draw.choice((True, False))}
    if draw.random() < 0.3:
        claim = {"name": "block", "persistentVolumeClaim": {"claimName": "a"}}
        template["spec"]["volumes"].append(claim)
        device = drawn(
            draw, name=("block", "block", "shm", "none"), devicePath=("/b", "/data", "", "/../b")
        )
        engine["volumeDevices"] = [device] * draw.choice((1, 1, 1, 2))


def _from(draw: random.Random, _: Body, engine: Body) -> None:
    item = some(draw, 0.6, configMapRef=[{"name": n} for n in (*_NAMES, "")])
    item |= some(draw, 0.4, secretRef=({"name": "a"}, {}))
    item |= some(draw, 0.3, prefix=("A_", "a b", "A=", "é"))
    engine["envFrom"] = [item]


def _refs(draw: random.Random, _: Body, engine: Body) -> None:
    key = some(draw, 0.9, name=(*_NAMES, ""), key=("a", "a.b", "..a", ".", "a b", "A_B", ""))
    key.setdefault("key", "a")
    source = {draw.choice(("configMapKeyRef", "secretKeyRef")): key}
    engine["env"].append({"name": "C", "valueFrom": source})


def _divisor(draw: random.Random, _: Body, engine: Body) -> None:
    field = drawn(draw, resource=("limits.cpu", "requests.memory", "limits.ephemeral-storage"))
    field["divisor"] = draw.choice(("1", "1m", "1Mi", "1Gi", "2", "0", "1000m", "1024Mi"))
    engine["env"].append({"name": "D", "valueFrom": {"resourceFieldRef": field}})


def _resizes(draw: random.Random, template: Body, engine: Body) -> None:
    def policy() -> Body:
        return drawn(
            draw,
            resourceName=("cpu", "memory", "nvidia.com/gpu"),
            restartPolicy=("NotRequired", "RestartContainer", "notRequired"),
        )

    engine["resizePolicy"] = [policy() for _ in range(draw.choice((1, 2)))]
    template["spec"] |= some(draw, 0.4, restartPolicy=("Never", "Always"))


def _restarts(draw: random.Random, template: Body, engine: Body) -> None:
    if draw.random() < 0.5:
        template["spec"]["restartPolicy"] = draw.choice(("Always", "Never", "OnFailure", "always"))
    elif draw.random() < 0.7:
        first = {"name": "first", "image": "a", **some(draw, 0.8, restartPolicy=_POLICIES)}
        template["spec"]["initContainers"] = [first]
    else:
        engine["restartPolicy"] = draw.choice(_POLICIES)


_POLICIES = ("Always", "Always", "Never", "always")


def _metadata(draw: random.Random, template: Body, _: Body) -> None:
    field = draw.choice(("labels", "annotations"))
    template["metadata"] = {field: {draw.choice((*_KEYS, "A/B", "a/b/c", "/a")): "a"}}


CHANGES: tuple[Change, ...] = (
    _nodes, _pods, _spread, _security, _dns, _aliases, _host, _pod_names, _gates, _claims, _volumes,
    _volumes, _mounted, _from, _refs, _divisor, _resizes, _restarts, _metadata,
)  # fmt: skip
