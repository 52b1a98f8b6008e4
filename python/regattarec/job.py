"""The process's part in a job: its role, its tables, and the steps it makes.

There is one job in a process. It begins at the first lookup, step, save or session, with all tables that were declared
until then. Without a role in the environment the tables are in this process. With the variables of a worker they are on
the servers. In a process with the variables of a server the first table that is declared serves the job and ends the
process, so that a script needs no branch for it; a script that calls regattarec.fleet has one, and serves there.
"""
import atexit
import ctypes
import json
import os
import sys
import threading
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence

from regattarec import _core, arguments, errors

if typing.TYPE_CHECKING:
    import torch

    from regattarec.session import Session

Target = tuple[_core.Lookup, typing.Any, typing.Any]  # a lookup, what its pull fills, and rows or None
Gradient = tuple[_core.Lookup, typing.Any, float | None]  # of a lookup's keys, and the learning rate
Piece = tuple[int, typing.Any]  # of the dense parameters: an offset and gradients

MODES = ("sync", "async", "half_async", "geo")
NAN_POLICIES = ("abort", "skip", "clip")

_job: "Job | None" = None


def current() -> "Job":
    """The job of this process; it is made here if there is none."""
    global _job
    if _job is None:
        _job = Job(_core.Fleet())
        _job.serve()
    return _job


def begin(make_fleet: Callable[[], _core.Fleet]) -> "Job":
    """Makes the job of this process, of a program that has a branch for servers."""
    global _job
    if _job is not None:
        raise errors.FailedPreconditionError(
            "fleet.init comes once, and before the first Embedding or EmbeddingBag: this process has a job already")
    _job = Job(make_fleet())
    return _job


def begun() -> bool:
    return _job is not None


class Job:
    def __init__(self, fleet: _core.Fleet) -> None:
        self.fleet = fleet
        self.weighs_steps = not fleet.alone  # its gradients meet those of others, and count by their samples
        self.tables: dict[str, dict[str, typing.Any]] = {}  # name → description
        self.dense: dict[str, typing.Any] | None = None  # description of the dense parameters that the tables' owner holds
        self.local_state: list[str] = []  # what only this process knows and training goes by, in words
        self.session: "Session | None" = None  # that has the epochs
        self.had_session = False
        self.optimizer: "torch.optim.Optimizer | None" = None  # that wrap has taken
        self.mode = "async"
        self.geo_step = 400
        self.nan_policy = "abort"
        self.bad_rows = 0  # gradients with NaN or Inf, that nan_policy dealt with
        self.bad_dense = 0  # steps in which those of dense parameters had some
        self.step = 0  # of the next commit
        self.done = False
        self.steps: _core.Steps | None = None  # once training has begun
        self._joined = False
        self.returns = False  # whether a process that replaces this one, killed, goes on in its place
        self.samples = 0  # of the last commit
        self._at_join: list[Callable[[], None]] = []
        self._at_pass: list[Callable[[], None]] = []
        self._pass = 0
        self._first = 0  # a step's batch of the pass is its number from here on
        self._in_pass = False
        self._open = False  # whether the present step was begun
        self._ahead: list[Target] = []  # what the next step's first pull fills
        self._pid = os.getpid()
        self._lock = threading.RLock()  # steps are for one thread at a time
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def serve(self) -> None:
        """In a server's process: serves until the workers are done, then ends the process."""
        if not self.fleet.is_server:
            return
        self.fleet.init_server()
        self.fleet.run_server()
        sys.exit(0)

    def use(self, mode: str | None = None, geo_step: int | None = None, nan_policy: str | None = None) -> None:
        """Says how workers and servers work together, and what becomes of gradients with NaN, before they meet."""
        if self._joined:
            raise errors.FailedPreconditionError("the job has begun: call regattarec.torch.init before wrap and the "
                                                 "first lookup")
        mode = self.mode if mode is None else arguments.choice("mode", mode, MODES)
        nan_policy = self.nan_policy if nan_policy is None else arguments.choice("nan_policy", nan_policy, NAN_POLICIES)
        geo_step = self.geo_step if geo_step is None else arguments.whole("geo_step", geo_step, 1, arguments.INT32)
        self.mode, self.nan_policy, self.geo_step = mode, nan_policy, geo_step

    def declare(self, table: dict[str, typing.Any]) -> int:
        """Adds a table's description, and gives its index. The same description may come again."""
        self.check()
        name = table["name"]
        known = self.tables.get(name)
        if known is not None and known != table:
            changed = ", ".join(f"{key} {known[key]!r} and {table[key]!r}" for key in table if known[key] != table[key])
            raise errors.InvalidArgumentError(
                f"table '{name}' is declared twice, with {changed}: modules that share a table declare it alike")
        if known is None:
            if self._joined:
                raise errors.FailedPreconditionError(
                    f"table '{name}' comes too late: make all modules before wrap and the first lookup")
            self.tables[name] = table
        return list(self.tables).index(name)

    def check_process(self) -> None:
        """The connections and threads are those of the process that made the job."""
        if os.getpid() != self._pid:
            raise errors.FailedPreconditionError(
                "this process was forked after Regatta began: give DataLoader "
                "multiprocessing_context='spawn', or keep lookups in the main process")

    def check(self) -> None:
        """The job goes on, in this process."""
        self.check_process()
        if self.done:
            raise errors.FailedPreconditionError("the job is over: it was stopped before")

    def _leave_to_parent(self) -> None:
        """In a forked process: the connections are the parent's, so nothing here may end them, the exit included."""
        for held in (self.fleet, self.steps):
            if held is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))

    def serve_dense(self, description: dict[str, typing.Any], at_join: Callable[[], None], at_pass: Callable[[], None]) -> None:
        """Puts dense parameters where the tables are. `at_join` is called once that is so, `at_pass` where others may
        have changed them since."""
        self.check()
        if self._joined:
            raise errors.FailedPreconditionError("dense parameters come too late: call wrap before the first lookup")
        if self.dense is not None:
            raise errors.FailedPreconditionError("there are dense parameters on the servers already: wrap one optimizer")
        self.dense = description
        self._at_join.append(at_join)
        self._at_pass.append(at_pass)

    def join(self, returns: bool = False) -> None:
        """Meets the servers and the other workers, with all tables that were declared, and the dense parameters.

        With `returns` a process that replaces a killed one takes its place, and the others wait for it.
        """
        self.check()
        if self._joined:
            return
        if not self.tables:
            raise errors.FailedPreconditionError("no table is declared: make an Embedding or EmbeddingBag first")
        tables = {"sparse": list(self.tables.values()), "dense": self.dense or {"parameters": []}}
        self.fleet.init_worker(json.dumps(tables), self.mode, self.geo_step, self.nan_policy, returns)
        self._joined, self.returns = True, returns
        self.step = self.fleet.loaded_steps  # of a save that the servers began with
        atexit.register(self._leave)
        for call in self._at_join:
            call()

    @property
    def joined(self) -> bool:
        return self._joined

    def start(self, first_step: int) -> None:
        """The steps go on at that number."""
        self.step = self._first = first_step
        self._make_steps()

    def _make_steps(self) -> _core.Steps:
        if self.steps is None:
            self.steps = self.fleet.start(self.step, self.nan_policy, list(self.tables))
        return self.steps

    def enter_pass(self, number: int, first_step: int, done: int) -> None:
        """A session has begun a pass, of which so many steps are done."""
        self._pass, self._first, self.step = number, first_step, first_step + done
        self._in_pass, self._open = True, False
        for call in self._at_pass:
            call()

    def leave_pass(self) -> None:
        """The session ends the pass."""
        self._in_pass = self._open = False
        self._pass += 1
        self._first = 0

    def _begin_step(self) -> bool:
        """Begins the step if it was not, and gives whether that has pulled."""
        if not self._joined:
            self.join()
        steps = self._make_steps()
        if not self._in_pass:
            if self.session is not None:
                raise errors.FailedPreconditionError(
                    "a session trains within its batches: for batch in session.batches(data)")
            steps.begin_pass(self._pass, self.step)
            self._in_pass = True
        if self._open:
            return False
        steps.begin_step(True, self.step, self._pass, self.step - self._first)
        self._open = True
        if not self._ahead:
            return False
        ahead, self._ahead = self._ahead, []
        steps.pull(ahead)
        return True

    def prefetch(self, lookups: list[Target]) -> None:
        """(lookup, out, rows or None) for each: they are filled together by the first pull of the step to come.

        That is the next step if the present one has pulled. A mode that may fetches the rows at once.
        """
        with self._lock:
            self.check()
            self._ahead += lookups
            if self._open and self.steps is not None and self.steps.prefetches:
                self.steps.prefetch([lookup for lookup, _, _ in self._ahead], self.step + 1, self._pass,
                                    self.step + 1 - self._first)

    def waits_for_next_step(self, lookup: _core.Lookup) -> bool:
        """Whether a step that was not begun pulls it."""
        return any(lookup is waiting for waiting, _, _ in self._ahead)

    def has_pulled(self, lookup: _core.Lookup) -> bool:
        """Whether the present step has pulled it, which is begun for it."""
        with self._lock:
            self.check()
            if not self._open:
                self._begin_step()
            return not self.waits_for_next_step(lookup)

    def fill(self, table: int, keys: typing.Any, vectors: typing.Any) -> None:
        """Puts vectors into a table. Until the job begins they wait."""
        self.check()
        if self.steps is not None:
            raise errors.FailedPreconditionError("vectors come before the first lookup: rows under way do not know of them")
        if self._joined:
            self.fleet.fill_rows(table, keys, vectors)
        else:
            self._at_join.append(lambda: self.fleet.fill_rows(table, keys, vectors))

    def pull(self, lookups: list[Target], train: bool) -> None:
        """Fills (lookup, out, rows or None) for each. Without lookups it brings the dense parameters alone."""
        with self._lock:
            self.check()
            self._pull(lookups, train)

    def _pull(self, lookups: list[Target], train: bool) -> None:
        if train:
            if not self._begin_step() or lookups:
                self._make_steps().pull(lookups)
            return
        self.join()
        steps = self._make_steps()
        # A number that no step of training has, so that no mode takes these rows for those of a step. A step of
        # training that was begun goes on: it has its rows.
        steps.begin_step(False, self.step + (1 << 40), self._pass, self.step)
        steps.pull(lookups)
        if self._open:
            steps.begin_step(True, self.step, self._pass, self.step - self._first)
            steps.pull([])

    def commit(self, samples: int, grads: Sequence[Gradient], dense: Sequence[Piece] = (), dense_rate: float | None = None,
               *, bad_dense: bool = False) -> None:
        """Ends the step with (lookup, one gradient of each key, learning rate) for each.

        Gradients are sums over the samples; where nothing weighs steps they are means. With 0 samples nothing is learnt,
        and others that wait for the step go on. `bad_dense` says that dense parameters of the process had a gradient with
        NaN or Inf, which the caller has dealt with.
        """
        with self._lock:
            self.check()
            pulled = self._open or self._begin_step()
            steps = self._make_steps()
            if not pulled:
                steps.pull([])
            self._open = False  # one that is refused is given up, too
            rows, dense_too = steps.commit(samples if self.weighs_steps else min(samples, 1), grads, dense, dense_rate)
            if rows or dense_too or bad_dense:
                self._count_bad(rows, int(dense_too) + bad_dense)
            self.step += 1
            self.samples = samples

    def refuse(self, why: str) -> typing.NoReturn:
        """Gives the step up: nothing is learnt of it, and the loop may go on."""
        with self._lock:
            self._open = False
            raise errors.FailedPreconditionError(
                f"step {self.step}: {why}. Nothing was committed. Look at the loss of this batch; a lower learning rate or clipping "
                "helps against growing gradients. regattarec.torch.init(nan_policy='skip') leaves such updates out, with a warning")

    def _count_bad(self, rows: int, dense: int) -> None:
        if not self.bad_rows and not self.bad_dense:
            what = {"skip": "such updates are left out", "clip": "such elements count as 0"}[self.nan_policy]
            whose = " and ".join(filter(None, (f"{rows} rows" if rows else "", "the dense parameters" if dense else "")))
            warnings.warn(f"step {self.step}: gradients of {whose} hold NaN or Inf; {what} (nan_policy='{self.nan_policy}'). "
                          "This is said once; the end says how many there were", RuntimeWarning, stacklevel=4)
        self.bad_rows += rows
        self.bad_dense += dense

    def pause(self) -> None:
        """Ends the pass: everything that was learnt is where the tables are. All workers call it."""
        self.check_process()
        if self._in_pass and self.session is not None:
            raise errors.FailedPreconditionError("a session saves its epochs itself: save between two of them")
        if self._in_pass and self.steps is not None:
            self.steps.end_pass()
            self._in_pass = self._open = False
            self._pass += 1

    def save(self, path: str, epoch: int, blobs: Mapping[str, bytes]) -> None:
        self.check()
        self.join()
        self.pause()
        self.fleet.save(path, epoch, True, self.step, blobs)

    def load(self, path: str) -> None:
        self.check()
        self.join()
        if self.steps is not None:
            raise errors.FailedPreconditionError("load comes before the first lookup: rows under way do not know of it")
        self.fleet.load(path)
        self.step = self.fleet.loaded_steps

    def stop(self, why: str = "") -> None:
        """This worker is done."""
        if self.done or os.getpid() != self._pid:
            return
        self.done = True
        if self.bad_rows or self.bad_dense:
            print(f"regattarec: {self.bad_rows} gradients of rows, and those of the dense parameters in {self.bad_dense} steps, "
                  f"held NaN or Inf (nan_policy='{self.nan_policy}')", file=sys.stderr)
        if not self._joined:
            return
        if not why and self.session is None:
            self.pause()
        self.fleet.stop_worker(why)

    def _leave(self) -> None:
        error = getattr(sys, "last_value", None)
        try:
            self.stop("" if error is None else f"{type(error).__name__}: {error}")
        except Exception as failure:
            print(f"regattarec: {failure}", file=sys.stderr)
            self.fleet.stop_worker(str(failure))
