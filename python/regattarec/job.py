"""The process's part in a job: its role, its tables, and the steps it makes.

There is one job in a process. It begins at the first lookup, with all tables that were declared until then. Without a
role in the environment the tables are in this process. With the variables of a worker they are on the servers. In a
process with the variables of a server the first table that is declared serves the job and ends the process, so that a
script needs no branch for it.
"""
import atexit
import ctypes
import json
import os
import sys
import threading

from regattarec import _core, errors

MODES = ("sync", "async", "half_async", "geo")

_job = None


def current():
    """The job of this process; it is made here if there is none."""
    global _job
    if _job is None:
        _job = Job()
    return _job


class Job:
    def __init__(self):
        self.fleet = _core.Fleet()
        self.tables = {}  # name → description
        self.dense = None  # description of the dense parameters that the tables' owner holds
        self.mode = "async"
        self.geo_step = 400
        self.step = 0  # of the next commit
        self.done = False
        self.steps = None  # once training has begun
        self._joined = False
        self._pass = 0
        self._in_pass = False
        self._open = False  # whether the present step was begun
        self._pid = os.getpid()
        self._lock = threading.RLock()  # steps are for one thread at a time
        os.register_at_fork(after_in_child=self._leave_to_parent)
        if self.fleet.is_server:
            self._serve()

    def _serve(self):
        """Plays the server until the workers are done, then ends the process."""
        self.fleet.init_server()
        self.fleet.run_server()
        sys.exit(0)

    def use(self, mode=None, geo_step=None):
        """Says how workers and servers work together, before they meet."""
        if self._joined:
            raise errors.FailedPreconditionError("the job has begun: call regattarec.torch.init before wrap and the "
                                                 "first lookup")
        if mode is not None and mode not in MODES:
            raise errors.InvalidArgumentError(f"mode '{mode}': there are {', '.join(MODES)}")
        self.mode = self.mode if mode is None else mode
        self.geo_step = self.geo_step if geo_step is None else geo_step

    def declare(self, table):
        """Adds a table's description, and gives its index. The same description may come again."""
        self._check()
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

    def _check(self):
        if os.getpid() != self._pid:
            raise errors.FailedPreconditionError(
                "this process was forked after Regatta began: give DataLoader "
                "multiprocessing_context='spawn', or keep lookups in the main process")
        if self.done:
            raise errors.FailedPreconditionError("the job is over: it was stopped before")

    def _leave_to_parent(self):
        """In a forked process: the connections are the parent's, so nothing here may end them, the exit included."""
        for held in (self.fleet, self.steps):
            if held is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))

    def join(self, dense=None):
        """Meets the servers and the other workers, with all tables that were declared, and `dense` parameters."""
        self._check()
        if self._joined:
            if dense is not None:
                raise errors.FailedPreconditionError("dense parameters come too late: call wrap before the first lookup")
            return
        if not self.tables:
            raise errors.FailedPreconditionError("no table is declared: make an Embedding or EmbeddingBag first")
        self.dense = dense
        tables = {"sparse": list(self.tables.values()), "dense": dense or {"parameters": []}}
        self.fleet.init_worker(json.dumps(tables), self.mode, self.geo_step, False)
        self._joined = True
        atexit.register(self._leave)

    def _begin_step(self):
        self.join()
        if self.steps is None:
            self.steps = self.fleet.start(self.step)
        if not self._in_pass:
            self.steps.begin_pass(self._pass, self.step)
            self._in_pass = True
        if not self._open:
            self.steps.begin_step(True, self.step, self._pass, self.step)
            self._open = True

    def pull(self, lookups, train):
        """Fills (lookup, out, rows or None) for each. Without lookups it brings the dense parameters alone."""
        with self._lock:
            self._check()
            self._pull(lookups, train)

    def _pull(self, lookups, train):
        if train:
            self._begin_step()
            self.steps.pull(lookups)
            return
        self.join()
        if self.steps is None:
            self.steps = self.fleet.start(self.step)
        # A number that no step of training has, so that no mode takes these rows for those of a step. A step of
        # training that was begun goes on: it has its rows.
        self.steps.begin_step(False, self.step + (1 << 40), self._pass, self.step)
        self.steps.pull(lookups)
        if self._open:
            self.steps.begin_step(True, self.step, self._pass, self.step)
            self.steps.pull([])

    def commit(self, samples, grads, dense=(), dense_rate=None):
        """Ends the step with (lookup, one gradient of each key, learning rate) for each.

        With 0 samples nothing is learnt, and others that wait for the step go on.
        """
        with self._lock:
            self._check()
            if not self._open:
                self._begin_step()
                self.steps.pull([])
            self.steps.commit(samples, grads, list(dense), dense_rate)
            self._open = False
            self.step += 1

    def pause(self):
        """Ends the pass: everything that was learnt is where the tables are. All workers call it."""
        if self._in_pass:
            self.steps.end_pass()
            self._in_pass = self._open = False
            self._pass += 1

    def save(self, path, epoch, blobs):
        self._check()
        self.join()
        self.pause()
        self.fleet.save(path, epoch, True, self.step, blobs)

    def load(self, path):
        self._check()
        self.join()
        if self.steps is not None:
            raise errors.FailedPreconditionError("load comes before the first lookup: rows under way do not know of it")
        self.fleet.load(path)
        self.step = self.fleet.loaded_steps

    def stop(self, why=""):
        """This worker is done."""
        if self.done or os.getpid() != self._pid:
            return
        self.done = True
        if not self._joined:
            return
        if not why:
            self.pause()
        self.fleet.stop_worker(why)

    def _leave(self):
        error = getattr(sys, "last_value", None)
        try:
            self.stop("" if error is None else f"{type(error).__name__}: {error}")
        except Exception as failure:
            print(f"regattarec: {failure}", file=sys.stderr)
            self.fleet.stop_worker(str(failure))
