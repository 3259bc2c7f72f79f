"""What queues allow: which groups may be scheduled, and how much of a queue is left.

Source: Volcano v1.14.1 pkg/scheduler/plugins/{proportion/proportion.go,capacity/capacity.go,
overcommit/overcommit.go}.
"""

import math
from collections.abc import Iterable, Sequence

from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.model import Cluster, Queue
from kthena_components.placement.volcano.amounts_and_shapes import PODS, Dimensions, Vector, plus
from kthena_components.placement.volcano.jobs import Job

Numbers = list[float]
_OVERCOMMIT = 1.2


@dataclass(slots=True, eq=False)
class Share:
    """What one queue may use."""

    queue: Queue
    real: Numbers
    """The limit: its capability, or what other queues' guarantees leave."""
    guarantee: Numbers
    used: Numbers
    inqueue: Numbers
    deserved: Numbers
    chain: tuple["Share", ...] = ()
    """This queue and its ancestors, as far as the plugin checks them."""

    def exceeded(self, request: Sequence[float], limit: Numbers, *, waiting: bool) -> list[int]:
        """List the resources of a request, except pods, for which the limit does not suffice."""
        return [
            at
            for at, wanted in enumerate(request)
            if at and wanted > 0
            and self.used[at] + (self.inqueue[at] if waiting else 0) + wanted > limit[at]
        ]  # fmt: skip


class Queues:
    """The queues of one cluster."""

    def __init__(self, cluster: Cluster, dimensions: Dimensions, total: Vector) -> None:
        """Compute the limits of all queues."""
        assert dimensions.names[0] == PODS  # noqa: S101 - `exceeded` leaves out position 0
        self.dimensions = dimensions
        plugins = cluster.scheduler.plugins
        self.by_deserved = "proportion" in plugins
        self.limited = self.by_deserved or "capacity" in plugins
        self._total = [float(number) for number in total]
        stated = {queue.name: queue for queue in cluster.queues}
        stated.setdefault("default", Queue(name="default"))
        self.shares = {name: self._share(queue) for name, queue in stated.items()}
        self._limit("capacity" in plugins)
        stated_factor = cluster.scheduler.arguments.get("overcommit", {}).get("overcommit-factor")
        factor = float(stated_factor or _OVERCOMMIT)
        self._overcommit = (
            (factor if factor >= 1 else _OVERCOMMIT) if "overcommit" in plugins else None
        )
        self._inqueue = self._zero()

    def _zero(self) -> Numbers:
        return [0.0] * len(self._total)

    def _share(self, queue: Queue) -> Share:
        used = list(map(float, self.dimensions.use(queue.used)))
        guarantee = list(map(float, self.dimensions.use(queue.guarantee)))
        return Share(queue, list(self._total), guarantee, used, self._zero(), self._zero())

    def _limit(self, hierarchical: bool) -> None:
        """Compute the real capability of each queue, parents first."""
        done: set[str] = set()
        for name in self.shares:
            self._limit_one(name, done, hierarchical=hierarchical)

    def _limit_one(self, name: str, done: set[str], *, hierarchical: bool) -> None:
        """Compute what a queue may use at most, after its parent."""
        if name in done:
            return
        done.add(name)
        share = self.shares[name]
        parent = self.shares.get(share.queue.parent) if hierarchical else None
        if parent is not None and parent is not share:
            self._limit_one(parent.queue.name, done, hierarchical=hierarchical)
        others = [
            one for one in self.shares.values()
            if not hierarchical or one.queue.parent == share.queue.parent
        ]  # fmt: skip
        whole = parent.real if parent is not None else self._total
        for at in range(len(whole)):
            promised = sum(one.guarantee[at] for one in others)
            share.real[at] = max(0.0, whole[at] - promised) + share.guarantee[at]
        for key, amount in share.queue.capability.items():
            if key in self.dimensions.names:
                at = self.dimensions.names.index(key)
                limit = self.dimensions.use({key: amount})[at]
                # A capability of no CPU or memory is none: NewResource leaves them at 0.
                if limit > 0 or key not in {"cpu", "memory"}:
                    share.real[at] = min(share.real[at], float(limit))
        share.chain = (share, *(parent.chain if parent is not None else ()))

    def open_session(self, jobs: Iterable[Job], used_total: Vector) -> None:
        """Count what waits, and share the cluster between the queues by their demand."""
        asked: dict[str, Numbers] = {}
        self._inqueue = self._zero()
        for share in self.shares.values():
            share.inqueue = self._zero()
        for job in jobs:
            if job.group.queue not in self.shares or not job.by_volcano:
                continue
            share = self.shares[job.group.queue]
            demand = asked.setdefault(job.group.queue, list(share.used))
            for task in job.tasks:
                if task.node is None:
                    _add(demand, task.shape.request)
            # The phase is Inqueue, or Running. Without a minimum and placed pods it is Completed.
            is_counted = job.enqueued and (job.minimum or job.placed)
            if is_counted and job.min_resources is not None:
                self._count_waiting(share, _left(job))
        self._used = used_total
        if self.by_deserved:
            self._divide(asked)

    def _count_waiting(self, share: Share, amount: Sequence[float]) -> None:
        _add(self._inqueue, amount)
        for one in share.chain:
            _add(one.inqueue, amount)

    def _divide(self, asked: dict[str, Numbers]) -> None:
        """Divide the cluster by weight; no queue gets more than it asks for."""
        left = list(self._total)
        for name in asked:
            self.shares[name].deserved = self._zero()
        waiting = dict.fromkeys(asked)
        while waiting:
            weight = sum(max(1, self.shares[name].queue.weight) for name in waiting)
            before, given = list(left), self._zero()
            for name in list(waiting):
                share = self.shares[name]
                old = list(share.deserved)
                part = max(1, share.queue.weight) / weight
                share.deserved = [
                    max(min(old[at] + before[at] * part, share.real[at], asked[name][at]),
                        share.guarantee[at])
                    for at in range(len(left))
                ]  # fmt: skip
                _add(given, [new - was for new, was in zip(share.deserved, old, strict=True)])
                if share.deserved == old or _fits(asked[name], share.deserved):
                    del waiting[name]
            left = [max(0.0, was - now) for was, now in zip(before, given, strict=True)]
            if left == before or not any(left[1:]):
                break

    def missing(self, job: Job) -> str:
        """Say why a queue takes no groups at all. Empty: it does."""
        share = self.shares.get(job.group.queue)
        if share is None:
            return f"the queue {job.group.queue} does not exist"
        return "" if share.queue.open else f"the queue {job.group.queue} is not open"

    def enqueue(self, job: Job) -> bool:
        """Let a group wait for nodes, if the cluster and its queue have room for minResources."""
        if job.min_resources is None:
            return True
        share = self.shares[job.group.queue]
        if self.blocking(job):
            return False
        self._count_waiting(share, job.min_resources)
        return True

    def blocking(self, job: Job) -> list[tuple[str, str]]:
        """List which limits minResources exceeds, with the resource."""
        wanted, names = job.min_resources, self.dimensions.names
        if wanted is None:
            return []
        found = []
        if self._overcommit is not None:
            idle = [whole * self._overcommit - used
                    for whole, used in zip(self._total, self._used, strict=True)]  # fmt: skip
            found += [("", names[at]) for at, number in enumerate(wanted)
                      if at and number and self._inqueue[at] + number > idle[at]]  # fmt: skip
        chain = self.shares[job.group.queue].chain if self.limited else ()
        found += [(share.queue.name, names[at]) for share in chain
                  for at in share.exceeded(wanted, share.real, waiting=True)]  # fmt: skip
        return found

    def overused(self, name: str) -> bool:
        """Say whether a queue has all that it deserves, so that it is passed over."""
        share = self.shares[name]
        return self.by_deserved and _fits(share.deserved, share.used)

    def refuses(self, name: str, request: Vector) -> bool:
        """Say whether a queue has no room for one more pod."""
        share = self.shares[name]
        if self.by_deserved and share.exceeded(request, share.deserved, waiting=False):
            return True
        if self.by_deserved or not self.limited:
            return False
        return any(one.exceeded(request, one.real, waiting=False) for one in share.chain)

    def account(self, name: str, request: Vector, *, sign: int = 1) -> None:
        """Count a pod that is placed, or taken away."""
        for share in self.shares[name].chain:
            share.used = [was + sign * each for was, each in zip(share.used, request, strict=True)]

    def order(self, name: str) -> tuple[int, float]:
        """Return the priority of a queue, and its share of what it deserves: the lowest is next."""
        share = self.shares[name]
        part = max((used / deserved if deserved else float(used > 0)
                    for used, deserved in zip(share.used, share.deserved, strict=True)),
                   default=0.0)  # fmt: skip
        return -share.queue.priority if self.limited else 0, part


def _add(to: Numbers, amount: Sequence[float]) -> None:
    for at, number in enumerate(amount):
        to[at] += number


def _fits(left: Sequence[float], right: Sequence[float]) -> bool:
    return all(one <= other or math.isclose(one, other, abs_tol=0.1)
               for one, other in zip(left, right, strict=True))  # fmt: skip


def _left(job: Job) -> Vector:
    """Return the part of minResources that its placed pods do not use yet."""
    held: Vector = tuple(0 for _ in job.min_resources or ())
    for task in job.tasks:
        if task.node is not None:
            held = plus(held, task.shape.request)
    stated = job.min_resources or ()
    return tuple(max(0, all_ - used) for all_, used in zip(stated, held, strict=True))
