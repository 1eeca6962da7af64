"""Workers on a Ray cluster: ``run --backend ray[=ADDRESS]``. The only module that imports Ray.

Ray starts the processes and carries the messages. It repeats nothing (``max_restarts=0``,
``max_task_retries=0``): a stream that goes on in another process would be a conversation sewn from two. One
actor is one worker, on one core. The coordinator has its place beside the driver, whose loss ends the run
anyway."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from agenteval.adapters.traffic.call_coordinator import SILENCE_S, Coordinator, News
from agenteval.adapters.traffic.leased_calls import CallReport, LeaseAnswer, LeaseRequest
from agenteval.core.errors import AuthorError, Problem
from agenteval.running.cluster.messages import WorkerHello, WorkerSetup
from agenteval.running.cluster.runner import CoordinatorLostError, WorkerLostError
from agenteval.running.cluster.worker import Worker
from agenteval.running.garbage_collection import reduce_garbage_collection

if TYPE_CHECKING:
    from agenteval.adapters.transport.limits import RateTerms
    from agenteval.core.config import BudgetConfig, Price
    from agenteval.core.trajectory import Usage
    from agenteval.running.cluster.runner import WorkerHandle

_HEARTBEAT_S = SILENCE_S / 6
_CLOSE_S = 10.0
_CONNECT_S = 5.0
_START_S = 120.0
"""The time, in seconds, in which the coordinator must have started, and one worker prepared the run."""
_LATE_S = 20.0
"""The time, in seconds, for which the others are waited for then."""
_OBJECT_STORE_BYTES = 100 * 1024 * 1024  # for messages alone; Ray takes a third of the memory otherwise
_NOT_SHIPPED = (".git", ".agenteval", ".venv", "venv", "node_modules", "__pycache__")
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry, ever
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or each start prints a warning about a future default
    "RAY_DEDUP_LOGS": "0",
}


def import_ray() -> Any:
    """Import Ray. Raise ``AuthorError`` if it is not installed."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        what = f"--backend ray needs Ray, which cannot be imported: {error}"
        raise AuthorError(Problem(what, 'pip install "agenteval-runner[ray]"')) from None
    return ray


@contextmanager
def connect(address: str | None, shipped: str | None) -> Iterator[Any]:
    """Yield Ray, connected to the cluster at ``address``, or to one that is started on this machine. The
    folder ``shipped`` is copied to the workers. Raise ``AuthorError`` if there is no such cluster."""
    ray = import_ray()
    more: dict[str, Any] = {"address": address}
    if address is None:
        more = {
            "address": "local",
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
            "num_cpus": _cores(),
        }
    elif address != "auto":
        _require_listening(address)
    environment = {"working_dir": shipped, "excludes": [*_NOT_SHIPPED]} if shipped else {}
    try:
        ray.init(**more, runtime_env=environment, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        what = f"--backend ray: {_first_line(error)}"
        remedy = "see `ray status`, and use the versions of Python and Ray that the cluster has"
        raise AuthorError(Problem(what, remedy if address else "")) from None
    try:
        with _without_raylet_messages(ray):
            yield ray
    finally:
        ray.shutdown()


def _require_listening(address: str) -> None:
    """Raise ``AuthorError`` if nothing listens at the address: Ray would go on trying for minutes."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise AuthorError(
            Problem(f"--backend ray={address}: this is no address", "use `ray=HOST:PORT` or `ray=auto`")
        )
    remedy = "use `ray=HOST:PORT`, as `ray start --head` prints it, or `ray=auto` on a machine of the cluster"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S):
            pass
    except (OSError, ValueError) as error:
        raise AuthorError(Problem(f"--backend ray: no cluster at {address}: {error}", remedy)) from None


@contextmanager
def _without_raylet_messages(ray: Any) -> Iterator[None]:
    """Keep Ray from writing about lost workers to stdout, which is reserved for results. There is no option
    for it; the runner says what was lost."""
    module = ray._private.worker
    before = getattr(module, "print_to_stdstream", None)
    module.print_to_stdstream = lambda *_args, **_more: None
    try:
        yield
    finally:
        module.print_to_stdstream = before


def _cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return (len(affinity(0)) if affinity else os.cpu_count()) or 1


class RayCluster:
    """The workers and the coordinator of a run (``Cluster``). ``count`` is the number of workers at most;
    there is no more than one for each core of the cluster."""

    def __init__(
        self,
        ray: Any,
        setup: WorkerSetup,
        *,
        count: int,
        concurrency: int,
        budget: BudgetConfig | None,
        carried: Sequence[tuple[Usage, str]],
    ) -> None:
        self._ray = ray
        self._setup = setup
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        actor = ray.remote(_CoordinatorActor).options(
            num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=100_000, scheduling_strategy=here
        )
        self.coordinator = RayCoordinator(actor.remote(concurrency, budget, tuple(carried)))
        self._worker = ray.remote(_WorkerActor).options(
            num_cpus=1, max_restarts=0, max_task_retries=0, max_concurrency=100_000
        )
        self._started = 0
        cores = int(ray.cluster_resources().get("CPU", 1))
        started = [self._start() for _ in range(max(1, min(cores, count)))]
        self._require_coordinator()
        ready = self._wait_for(started)
        self._greet(ready)
        self.workers: list[WorkerHandle] = [*ready]
        self.without_core = len(started) - len(ready)
        """The number of workers for which no core was free."""

    def _require_coordinator(self) -> None:
        """Raise ``AuthorError`` if the coordinator does not start: all calls would wait for it for ever."""
        ray = self._ray
        try:
            ray.get(self.coordinator.actor.take_news.remote(), timeout=_START_S)
        except (ray.exceptions.RayError, TimeoutError) as error:
            what = f"--backend ray: the coordinator of the calls could not be started: {_first_line(error)}"
            raise AuthorError(Problem(what, "see `ray status`: this machine must take part")) from None

    def _wait_for(self, workers: Sequence[_RayWorker]) -> list[_RayWorker]:
        """Return the workers that are ready, or that failed. The others find no core, because the cluster is
        busy with something else; they are given up. If there is none at all, return all."""
        hellos = {worker.actor.hello.remote(): worker for worker in workers}
        wait = self._ray.wait
        if not wait([*hellos], num_returns=1, timeout=_START_S)[0]:
            return list(workers)
        done, late = wait([*hellos], num_returns=len(hellos), timeout=_LATE_S)
        for each in late:
            hellos[each].kill()
        return [hellos[each] for each in done]

    def _start(self) -> _RayWorker:
        self._started += 1
        setup = replace(self._setup, name=f"worker {self._started}")
        return _RayWorker(self._ray, setup.name, self._worker.remote(setup, self.coordinator))

    def _greet(self, workers: Sequence[_RayWorker]) -> None:
        """Wait until all workers are ready. Raise ``AuthorError`` if one of them would measure something
        different, or cannot be started."""
        ray = self._ray
        problems: dict[Problem, None] = {}
        for worker in workers:
            try:
                hello = ray.get(worker.actor.hello.remote(), timeout=_LATE_S)
            except (ray.exceptions.RayError, TimeoutError) as error:
                hello = WorkerHello((f"it could not be started: {_first_line(error)}",))
            worker.place = hello.place or worker.name
            problems |= dict.fromkeys(_problems_of(hello))
        if problems:
            raise AuthorError(*problems)

    async def start(self) -> WorkerHandle:
        worker = self._start()
        hello = await worker.actor.hello.remote()
        if problems := [*_problems_of(hello)]:
            worker.kill()
            raise AuthorError(*problems)
        worker.place = hello.place
        self.workers.append(worker)
        return worker

    async def lose(self, worker: str) -> None:
        with self._coordinator_is_there():
            await self.coordinator.actor.lose.remote(worker)

    async def next_news(self) -> list[News]:
        with self._coordinator_is_there():
            answer = self.coordinator.actor.next_news.remote()
            found: list[News] = await asyncio.wait_for(answer, _HEARTBEAT_S + 2 * SILENCE_S)
        return found

    async def take_news(self) -> list[News]:
        with self._coordinator_is_there():
            found: list[News] = await self.coordinator.actor.take_news.remote()
        return found

    @contextmanager
    def _coordinator_is_there(self) -> Iterator[None]:
        try:
            yield
        except self._ray.exceptions.RayError as error:
            raise CoordinatorLostError("the coordinator of the run's calls is gone") from error
        except TimeoutError as error:
            raise CoordinatorLostError("the coordinator of the run's calls does not answer") from error

    def close(self) -> None:
        """Close the agents of the workers, and end the workers."""
        closing = [worker.actor.close.remote() for worker in self.workers if isinstance(worker, _RayWorker)]
        with suppress(self._ray.exceptions.RayError, TimeoutError):
            self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_S)


def _problems_of(hello: WorkerHello) -> Iterator[Problem]:
    remedy = (
        "all machines need the same files, packages and environment, and within the project the configuration"
        " needs relative paths (docs/cluster.md)"
    )
    for text in hello.problems:
        yield Problem(f"a worker ({hello.place or 'not started'}) cannot take part: {text}", remedy)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


# ── a worker ─────────────────────────────────────────────────────────────────────────────────────


class _RayWorker:
    """A worker that is a Ray actor (``WorkerHandle``)."""

    def __init__(self, ray: Any, name: str, actor: Any) -> None:
        self.name = name
        self.place = name
        self.actor = actor
        self._ray = ray

    async def play(self, order: bytes) -> AsyncIterator[bytes]:
        try:
            async for reference in self.actor.play.options(num_returns="streaming").remote(order):
                yield await reference
        except self._ray.exceptions.RayTaskError as error:
            raise RuntimeError(_first_line(error.cause)) from error
        except self._ray.exceptions.RayError as error:
            raise _explain_loss(error) from error

    def update(self, state: bytes) -> None:
        self.actor.update.remote(state)

    def cancel(self, number: int, why: str) -> None:
        self.actor.cancel.remote(number, why)

    async def flush(self) -> bytes:
        try:
            lines: bytes = await self.actor.flush.remote()
        except self._ray.exceptions.RayError as error:
            raise WorkerLostError(_first_line(error)) from error
        return lines

    def kill(self) -> None:
        self._ray.kill(self.actor, no_restart=True)


def _explain_loss(error: BaseException) -> WorkerLostError:
    """Say in a few words what Ray says about the loss of a worker in many."""
    text = str(error).lower()
    if type(error).__name__ == "OutOfMemoryError" or "out of memory" in text.partition("common causes")[0]:
        return WorkerLostError("its worker used up the memory of the machine")
    if "node has died" in text or "node was" in text or "node failure" in text:
        return WorkerLostError("the machine of its worker is gone", is_machine=True)
    return WorkerLostError("its worker died: it was killed, crashed or ran out of memory")


class _WorkerActor:
    """The process of a worker. The limits of the calls are asked for over Ray."""

    def __init__(self, setup: WorkerSetup, coordinator: RayCoordinator) -> None:
        self._worker = Worker(setup, coordinator)
        self._ending = ExitStack()
        self._ending.enter_context(reduce_garbage_collection())
        threading.Thread(target=_beat, args=(coordinator, setup.name), daemon=True).start()

    async def hello(self) -> WorkerHello:
        return self._worker.hello()

    async def play(self, order: bytes) -> AsyncIterator[bytes]:
        async for lines in self._worker.play(order):
            yield lines

    async def update(self, state: bytes) -> None:
        self._worker.update(state)

    async def cancel(self, number: int, why: str) -> None:
        self._worker.cancel(number, why)

    async def flush(self) -> bytes:
        return self._worker.flush()

    async def close(self) -> None:
        await self._worker.close()


def _beat(coordinator: RayCoordinator, name: str) -> None:
    """Tell the coordinator that this process is alive, until it ends."""
    alive = threading.Event()
    while True:
        coordinator.actor.beat.remote(name)
        alive.wait(_HEARTBEAT_S)


# ── the coordinator ──────────────────────────────────────────────────────────────────────────────


class _CoordinatorActor:
    """The process of the coordinator."""

    def __init__(
        self, concurrency: int, budget: BudgetConfig | None, carried: Sequence[tuple[Usage, str]]
    ) -> None:
        self._coordinator = Coordinator(concurrency, budget, carried)
        self._watching: asyncio.Task[None] | None = None

    async def lease(self, holder: str, lease: int, request: LeaseRequest) -> LeaseAnswer:
        return await self._coordinator.lease(holder, lease, request)

    async def take(self, holder: str, rate: RateTerms) -> None:
        await self._coordinator.take(holder, rate)

    async def open_call(
        self, holder: str, call: int, name: str, price: Price | None, prompt_tokens: int, role: str
    ) -> str:
        return await self._coordinator.open_call(holder, call, name, price, prompt_tokens, role)

    async def report(self, holder: str, reports: Sequence[CallReport]) -> None:
        self._coordinator.report(holder, reports)

    async def beat(self, holder: str) -> None:
        self._watching = self._watching or asyncio.create_task(self._coordinator.watch())
        self._coordinator.beat(holder)

    async def lose(self, holder: str) -> None:
        self._coordinator.lose(holder)

    async def next_news(self) -> list[News]:
        # No news is an answer, too: a coordinator that gives none is gone.
        with anyio.move_on_after(_HEARTBEAT_S):
            return await self._coordinator.next_news()
        return []

    async def take_news(self) -> list[News]:
        return self._coordinator.take_news()


class RayCoordinator:
    """The coordinator, as a process of the run reaches it (``CallCoordinator``)."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    async def lease(self, holder: str, lease: int, request: LeaseRequest) -> LeaseAnswer:
        answer: LeaseAnswer = await self.actor.lease.remote(holder, lease, request)
        return answer

    async def take(self, holder: str, rate: RateTerms) -> None:
        await self.actor.take.remote(holder, rate)

    async def open_call(
        self, holder: str, call: int, name: str, price: Price | None, prompt_tokens: int, role: str
    ) -> str:
        refusal: str = await self.actor.open_call.remote(holder, call, name, price, prompt_tokens, role)
        return refusal

    def report(self, holder: str, reports: Sequence[CallReport]) -> None:
        self.actor.report.remote(holder, reports)
