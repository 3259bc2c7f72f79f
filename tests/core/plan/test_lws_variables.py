"""Which references to LeaderWorkerSet's variables nothing resolves."""

from typing import Any

from kthena_components.core.plan.lws_variables import unset_lws_names, with_lws_names
from tests.support.for_each import for_each
from tests.support.specs import template

SIZE, LEADER = "LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS"
UNSET: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "command": ({"command": ["serve", f"$({SIZE})"]}, [("command", SIZE)]),
    "args": ({"args": [f"--at=$({LEADER}):1"]}, [("args", LEADER)]),
    "shell": ({"command": ["sh", "-c", f"serve ${LEADER}:1"]}, [("command", LEADER)]),
    "braces": ({"command": ["sh", "-c", f"serve ${{{LEADER}}}"]}, [("command", LEADER)]),
    "env": ({"env": [{"name": "A", "value": f"$({SIZE})"}]}, [("env[0].value", SIZE)]),
    "each-text-once": (
        {"command": [f"$({LEADER})", f"$({SIZE})"], "args": [f"$({SIZE})"]},
        [("command", SIZE), ("args", SIZE)],
    ),
    "another-is-set": (
        {"env": [{"name": SIZE, "value": "2"}], "args": [f"$({SIZE})", f"$({LEADER})"]},
        [("args", LEADER)],
    ),
    "expanded-beside-kthenas": ({"args": [f"$({SIZE})", "$(GROUP_SIZE)"]}, [("args", SIZE)]),
    "longer-name": ({"args": [f"${SIZE}_X ${{{SIZE}_X}} $(MY_{SIZE})"]}, []),
    "escaped": ({"args": [f"echo $$({SIZE})"]}, []),
    "set-in-env": ({"env": [{"name": SIZE, "value": "2"}], "args": [f"$({SIZE})"]}, []),
    "set-elsewhere": ({"envFrom": [{"configMapRef": {"name": "c"}}], "args": [f"$({SIZE})"]}, []),
    "set-in-the-script": ({"command": ["sh", "-c", f"{SIZE}=2; serve ${SIZE}"]}, []),
    "shown-by-the-script": (
        {"command": ["sh", "-c", f'echo "{SIZE}=${SIZE}"; serve ${SIZE}']},
        [("command", SIZE)],
    ),
    "set-to-itself": (
        {"command": ["sh", "-c", f"export {SIZE}=${{{SIZE}:-1}}; serve"]},
        [("command", SIZE)],
    ),
    "default": ({"command": ["sh", "-c", f"serve ${{{SIZE}:-2}}"]}, [("command", SIZE)]),
    "length": ({"command": ["sh", "-c", f"serve ${{#{SIZE}}}"]}, [("command", SIZE)]),
    "arithmetic": ({"command": ["sh", "-c", f"serve $(({SIZE} - 1))"]}, [("command", SIZE)]),
    "by-name": ({"command": ["sh", "-c", f"serve $(printenv {SIZE})"]}, [("command", SIZE)]),
    "python": ({"command": ["python3", "-c", f"os.environ['{SIZE}']"]}, [("command", SIZE)]),
    "probe": (
        {"readinessProbe": {"exec": {"command": ["sh", "-c", f"nc -z ${LEADER} 1"]}}},
        [("readinessProbe.exec.command", LEADER)],
    ),
    "hook": (
        {"lifecycle": {"preStop": {"exec": {"command": ["leave", f"${{{LEADER}}}"]}}}},
        [("lifecycle.preStop.exec.command", LEADER)],
    ),
    "for-both": ({"command": ["sh", "-c", f'[ "${LEADER}" ] || A=$ENTRY_ADDRESS']}, []),
    "kthenas": ({"args": ["$(GROUP_SIZE)", "$(ENTRY_ADDRESS)"]}, []),
    "nothing": ({"command": None, "env": None}, []),
}


@for_each(("container", "found"), UNSET.values(), ids=UNSET)
def test_a_reference_that_nothing_sets_is_found(
    container: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    at = "spec.containers[0]"
    assert list(unset_lws_names(template(**container))) == [(f"{at}.{p}", n) for p, n in found]


def test_init_containers_count() -> None:
    body = template()
    body["spec"]["initContainers"] = [{"name": "a", "args": [f"$({SIZE})"]}]
    assert list(unset_lws_names(body)) == [("spec.initContainers[0].args", SIZE)]
    assert list(unset_lws_names({})) == []


def test_where_the_variables_are_added_nothing_is_unset() -> None:
    body = template(args=[f"$({SIZE})", f"$({LEADER})"])
    own = [{"name": n, "value": "1"} for n in ("GROUP_SIZE", "ENTRY_ADDRESS", "WORKER_INDEX")]
    assert list(unset_lws_names(with_lws_names(body, own))) == []
    assert with_lws_names(template(), own) == template()
