"""A training run in epochs: resumed where it stopped, checkpointed while it goes on, measured over all workers.

    with rt.session(save="model", checkpoint_minutes=10) as s:
        for epoch in s.epochs(3):
            for batch in s.batches(data):
                …
                s.observe(loss, predictions=torch.sigmoid(logits), labels=y)
                optimizer.zero_grad(); loss.backward(); optimizer.step()

Every batch makes one step. Ctrl+C (SIGTERM, a lost terminal) finishes the step, saves and ends; the same command goes on
from there.
"""
import itertools
import json
import math
import os
import signal
import sys
import time
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy

from regattarec import _core, arguments, errors
from regattarec import job as _job
from regattarec.data import Dataset
from regattarec.history import History, line
from regattarec.progress import Progress

if typing.TYPE_CHECKING:
    import types

Batch = typing.TypeVar("Batch")
Self = typing.TypeVar("Self", bound="Session")
Floats = numpy.ndarray[typing.Any, numpy.dtype[numpy.float32]]

IDLE_BATCHES = 100  # without a step, after which the program is told
BEGIN_AGAIN = 75  # the exit code that tells `regatta launch --max_restarts` so


def ask_to_begin_again(why: object, reasons: Iterable[str]) -> typing.NoReturn:
    """Ends this process so that the launcher starts the whole job again, which goes on at its last save."""
    print(f"regattarec: {why}\nregattarec: the job is to begin again from its last save: a killed worker cannot be "
          f"replaced alone, because of {' and '.join(reasons)}", file=sys.stderr)
    raise SystemExit(BEGIN_AGAIN)


def _interrupt() -> KeyboardInterrupt:
    """Ends the program as Ctrl+C does, without a traceback: the line before it says where the run stopped."""
    made, before = KeyboardInterrupt("stopped by Ctrl+C"), sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: "types.TracebackType | None") -> None:
        if error is made:
            print(f"{kind.__name__}: {error}", file=sys.stderr)
        else:
            before(kind, error, traceback)

    sys.excepthook = hook
    return made


def _floats(values: typing.Any, what: str) -> Floats:
    """One float32 after another, of a tensor, an array or a list."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().to("cpu")
            values = values.numpy() if values.is_complex() else values.float().numpy()
        if numpy.iscomplexobj(values):
            raise TypeError("these are complex numbers")
        return numpy.ascontiguousarray(values, dtype=numpy.float32).reshape(-1)
    except (TypeError, ValueError, NotImplementedError) as error:  # the last of a tensor without values
        raise errors.InvalidArgumentError(f"observe: {what}: {error}") from error


class _Observed:
    """What the program has said of the present step."""

    def __init__(self) -> None:
        self.loss, self.samples = 0.0, 0
        self.predictions: list[Floats] = []
        self.labels: list[Floats] = []

    def add(self, loss: float | None, predictions: Floats | None, labels: Floats | None, samples: int) -> None:
        if loss is not None:
            self.loss += loss * samples
            self.samples += samples
        if predictions is not None and labels is not None:
            self.predictions.append(predictions)
            self.labels.append(labels)


class _Place(typing.NamedTuple):
    """Where an epoch goes on."""

    epoch: int
    first_step: int
    done: int  # its batches
    stopped: bool  # it ends here


class Session:
    def __init__(self, save: arguments.AnyPath | None = None, *, resume: bool = True, checkpoint_minutes: float = 0,
                 checkpoint_steps: int = 0, keep_epochs: int = 0, seed: int | None = 0,
                 metric: typing.Literal["binary", "regression"] = "binary", progress: bool | None = None) -> None:
        paces = dict(checkpoint_minutes=arguments.real("checkpoint_minutes", checkpoint_minutes, 0),
                     checkpoint_steps=arguments.whole("checkpoint_steps", checkpoint_steps),
                     keep_epochs=arguments.whole("keep_epochs", keep_epochs))
        for name, value in paces.items():
            if value and save is None:
                raise errors.InvalidArgumentError(f"{name} needs save=, the folder of the saves")
        arguments.choice("metric", metric, ("binary", "regression"))
        folder = "" if save is None else arguments.path("save", save)
        again = os.environ.get("REGATTA_JOB_RESTARTS", "0") != "0"
        resume = arguments.flag("resume", resume)
        self._seed = None if seed is None else arguments.whole("seed", seed, -arguments.INT64, arguments.UINT64)
        self._show = None if progress is None else arguments.flag("progress", progress)
        self._job = _job.current()
        self._options: dict[str, typing.Any] = dict(save=folder, resume=resume or again, metric=metric, **paces)
        self.history = History()
        self._running: _core.Run | None = None
        self._last_epoch = 0  # once the session is over
        self._place: _Place | None = None
        self._batches: typing.Any = None  # the generator of the epoch's batches
        self._used: object = None  # an iterator that an epoch has begun: there is nothing left for another
        self._data: str | None = None  # what decides which batch is batch k, as JSON
        self._resumed_data: str | None = None
        self._counted = 0  # the steps that the run knows of
        self._observed = _Observed()
        self._measured = False
        self._idle = 0  # batches before the first step of the loop's own

    # ---- For the program.

    def __enter__(self: Self) -> Self:
        job = self._job
        job.check_process()
        if self._running is not None or job.session is not None:
            raise errors.FailedPreconditionError("a session is entered once, and one at a time")
        if job.had_session:
            raise errors.FailedPreconditionError(
                "this process has had a session, and a process makes one: give it more epochs (session.epochs), or train on in "
                "another process, which goes on from the saves of save=")
        if job.steps is not None:
            raise errors.FailedPreconditionError("training has begun: enter the session before the first lookup")
        if job.joined and self._comes_back() and not job.returns:
            raise errors.FailedPreconditionError(
                "killed workers of this job are started again, and it was joined before the session could say that they come "
                "back: leave out what joins it (fleet.init_worker, regattarec.torch.init_process_group); a session does it itself")
        try:
            job.join(returns=self._comes_back() or self._begins_again())
        except errors.Error as error:
            if self._others_ended(error) and self._begins_again():
                ask_to_begin_again(error, self._local_state())
            raise
        if self._begins_again() and job.fleet.replaces:
            ask_to_begin_again("this process replaces a killed one", self._local_state())
        self._running = _core.Run(job.fleet, self._blobs, **self._options)
        job.session, job.had_session = self, True
        self._progress = Progress(self._show if job.fleet.is_first_worker else False)
        job.start(self._run.first_step)
        if self._run.resumed_from and not self._run.returns:
            self._restore(self._run.resumed_from)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: "types.TracebackType | None") -> typing.Literal[False]:
        job = self._job
        try:
            if error is None:
                self._finish()
        except BaseException as failure:
            self._leave(f"{type(failure).__name__}: {failure}")
            raise
        stopped = self._run.ended and isinstance(error, (KeyboardInterrupt, SystemExit))
        self._leave("" if error is None or stopped else f"{type(error).__name__}: {error}")
        if error is not None:
            job.stop("" if stopped else f"{type(error).__name__}: {error}")
        if error is not None and self._others_ended(error) and self._begins_again():
            ask_to_begin_again(error, self._local_state())
        return False

    @property
    def epoch(self) -> int:
        """The number of the present epoch, from 0 on; behind the last one their number."""
        if self._place is not None:
            return self._place.epoch
        return self._last_epoch if self._running is None else self._running.epoch

    @property
    def step(self) -> int:
        """The number of the present step, from 0 on, of all epochs."""
        return int(self._job.step)

    def epochs(self, number: int) -> Iterator[int]:
        """The numbers of the epochs that are left to train, of so many in all."""
        if self._job.session is not self:
            raise errors.FailedPreconditionError("use the session in a with statement")
        assert self._job.steps is not None
        self._run.begin(self._job.steps, arguments.whole("epochs", number, 1))
        while (found := self._run.next_pass()) is not None:
            self._place = _Place._make(typing.cast(Iterable[typing.Any], found))
            self._batches = None
            yield self._place.epoch
            self._end_epoch()
        self._raise_stop()

    def batches(self, data: Iterable[Batch] | Callable[[int], Iterable[Batch]], accumulate: int = 1) -> Iterator[Batch]:
        """The batches of the epoch that are left to train.

        `data` is a regattarec.data.Dataset, something that gives batches when it is iterated over (a DataLoader, a
        list), or a function of the epoch that gives such. Batch k of an epoch must be the same each time. A step takes
        `accumulate` batches.
        """
        if self._place is None:
            raise errors.FailedPreconditionError("batches go within an epoch: for epoch in session.epochs(3)")
        if self._batches is not None:
            raise errors.FailedPreconditionError("an epoch goes over its batches once")
        accumulate = arguments.whole("accumulate", accumulate, 1)
        if isinstance(data, (str, bytes, os.PathLike)):
            raise TypeError(f"data: {data!r} is a path; a regattarec.data.Dataset reads its batches")
        if not callable(data):
            self._check_batches(data)
        self._batches = self._train(data, accumulate)
        return typing.cast(Iterator[Batch], self._batches)

    def _check_batches(self, data: object) -> None:
        if not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):
            raise TypeError(f"data: {arguments.shown(data)} gives no batches; it takes a regattarec.data.Dataset, a DataLoader, "
                            "a list, or a function of the epoch")
        if isinstance(data, Iterator):
            if data is self._used:
                raise errors.FailedPreconditionError(
                    f"data: an epoch before has used up this {type(data).__name__}; give a list, or a function of the epoch that "
                    "makes another one")
            self._used = data

    def observe(self, loss: typing.Any = None, predictions: typing.Any = None, labels: typing.Any = None) -> None:
        """Counts the step's loss (a mean), and measures predictions against labels. Any of them may be left out.

        It belongs in the loop over the batches. `loss` is a number or a tensor with one; the others are tensors, arrays or
        lists.
        """
        if self._place is None or self._batches is None:
            raise errors.FailedPreconditionError("observe belongs in the loop over the batches: it is of a step")
        if (predictions is None) != (labels is None):
            raise errors.InvalidArgumentError("observe: predictions and labels go together")
        samples = 1
        try:
            loss = None if loss is None else float(loss)
        except (TypeError, ValueError, RuntimeError) as error:  # PyTorch has either for more than one number
            raise errors.InvalidArgumentError(f"observe: loss is one number, the mean over the samples: {error}") from error
        if loss is not None and not math.isfinite(loss):
            raise errors.DataLossError(
                f"the loss of step {self.step} is {loss}: look at the batch and the learning rate; the run goes on from its "
                "last save when the same command is started again")
        if predictions is not None:
            predictions, labels = _floats(predictions, "predictions"), _floats(labels, "labels")
            if len(predictions) != len(labels):
                raise errors.InvalidArgumentError(f"observe: {len(predictions)} predictions and {len(labels)} labels")
            samples = len(predictions)
            if self._options["metric"] == "binary" and samples:
                for what, values in (("predictions", predictions), ("labels", labels)):
                    if not (values.min() >= 0 and values.max() <= 1):
                        raise errors.InvalidArgumentError(
                            f"observe: {what} from {values.min()} to {values.max()} are no probabilities, from 0 to 1; "
                            "metric='regression' measures any numbers")
        self._observed.add(loss, predictions, labels, samples)

    # ---- For what a kind of tensors needs.

    def _state(self) -> dict[str, bytes]:
        """Blobs of a save, by name."""
        return {}

    def _load(self, blobs: dict[str, bytes]) -> None:
        """What _state gave, in a run that resumes."""

    def _local_state(self) -> list[str]:
        """What only this process knows, in words: with it a killed worker cannot be replaced alone."""
        return list(self._job.local_state)

    def _plant(self, number: int) -> None:
        """Seeds the random numbers of a step."""

    def _others_ended(self, error: BaseException) -> bool:
        """Whether it is an error of what other processes did."""
        return isinstance(error, (errors.AbortedError, errors.UnavailableError))

    def _goes_on(self, has_batch: bool) -> bool:
        """Whether this worker makes a step with the batch that it has, or has not."""
        return has_batch

    # ---- Inside.

    @property
    def _run(self) -> _core.Run:
        assert self._running is not None
        return self._running

    def _comes_back(self) -> bool:
        return self._job.fleet.workers_return and not self._local_state()

    def _begins_again(self) -> bool:
        """Whether a kill returns the whole job to its last save: a new process would not know what this one knows."""
        return self._job.fleet.workers_return and bool(self._local_state()) and bool(self._options["save"])

    def _blobs(self) -> dict[str, bytes]:
        blobs = self._state()
        if self._data is not None:
            blobs["session/data"] = self._data.encode()
        return blobs

    def _restore(self, folder: str) -> None:
        if not self._job.fleet.is_first_worker and not self._local_state():
            return
        blobs = _core.read_blobs(folder)
        self._resumed_data = blobs.get("session/data", b"").decode() or None
        self._load(blobs)

    def _number(self, seed: int, step: int) -> int:
        """Of the random numbers of a step at this worker."""
        mixed: int = (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + self._job.fleet.worker_index + 1)
        mixed = (mixed ^ (mixed >> 31)) * 0x94D049BB133111EB
        return (mixed ^ (mixed >> 29)) & (2**63 - 1)

    def _source(self, data: typing.Any, epoch: int, skip: int) -> Iterator[typing.Any]:
        """The epoch's batches behind the first `skip`."""
        if isinstance(data, Dataset):
            self._data = json.dumps(data.identity(), sort_keys=True)
            if epoch == 0 and not skip and data.count == 1 and self._job.fleet.worker_num > 1:
                self._progress.line("every worker reads all files of the dataset: Dataset(index=, count=) gives each a part")
            if self._job.fleet.is_first_worker and skip and self._resumed_data not in (None, self._data):
                raise errors.FailedPreconditionError(
                    f"the run was stopped in the middle of epoch {epoch}, and its data has changed since: it was "
                    f"{self._resumed_data}, now it is {self._data}. Put it back, or begin anew with resume=False")
            return data.pass_from(epoch, skip)
        if self._seed is not None:
            self._plant(self._number(self._seed, epoch << 32))  # a DataLoader that shuffles does it alike in every run of the epoch
        read: typing.Any = getattr(data, "dataset", None)
        if isinstance(read, Dataset):
            read.epoch = epoch  # the processes of a DataLoader have a copy each
        sampler: typing.Any = getattr(data, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        batches = data
        if callable(data):
            batches = data(epoch)
            self._check_batches(batches)
        return itertools.islice(iter(batches), skip, None)

    def _train(self, data: typing.Any, accumulate: int) -> Iterator[typing.Any]:
        job, run = self._job, self._run
        assert self._place is not None
        epoch, first, done, stopped = self._place
        job.enter_pass(epoch, first, done)
        goes_on, pending, read = not stopped, 0, 0.0
        source = self._source(data, epoch, done * accumulate) if goes_on else iter(())
        self._observed = _Observed()
        before = self._counted = job.step
        begun = time.perf_counter()
        while goes_on:
            asked = time.perf_counter()
            batch = next(source, None)
            if not self._goes_on(batch is not None):
                goes_on = not _core.stop_requested()  # which ends a wait for data, too
                break
            read += time.perf_counter() - asked
            if self._seed is not None:
                self._plant(self._number(self._seed, job.step * accumulate + pending))
            yield batch
            pending += 1
            if job.step > before + (pending == accumulate):
                raise errors.FailedPreconditionError(
                    f"a session makes one step of {accumulate} batch(es), and this loop made "
                    f"{job.step - before} of {pending}; batches(data, accumulate=n) says how many there are")
            if pending < accumulate:
                continue
            if job.step == before:  # the loop left the batch out; others wait for the step
                job.commit(0, [])
                self._note_idle()
            else:
                self._idle = -1
            goes_on = self._count(run, read, time.perf_counter() - begun)
            before, begun, pending, read = job.step, time.perf_counter(), 0, 0.0
        self._close_pass(goes_on)

    def _note_idle(self, more: int = 1) -> None:
        """Says once that a loop makes no steps. One that has made a step may leave batches out."""
        if self._idle < 0:
            return
        self._idle += more
        if self._idle == IDLE_BATCHES or not more and self._idle:
            warnings.warn(f"no step in {self._idle} batches, so nothing is learnt: call optimizer.step() in the loop over the batches, "
                          "of the optimizer that regattarec.torch.wrap returned", RuntimeWarning, stacklevel=3 if more else 4)
            self._idle = -1

    def _count(self, run: _core.Run, read: float, seconds: float) -> bool:
        self._counted = self._job.step
        seen, self._observed = self._observed, _Observed()
        predictions = numpy.concatenate(seen.predictions) if seen.predictions else None
        labels = numpy.concatenate(seen.labels) if seen.labels else None
        samples = self._job.samples if predictions is None else len(predictions)
        self._measured |= seen.samples > 0
        goes_on = run.after_step(samples, seen.loss / max(seen.samples, 1), predictions, labels, read, seconds)
        if self._progress.due:
            self._show_progress(self.epoch, run.interval)
        return goes_on

    def _show_progress(self, epoch: int, now: dict[str, typing.Any]) -> None:
        figures = [f"batch {now['batches']}"]
        if self._measured:
            figures.append(f"loss {now['loss']:.4f}")
        if "auc" in now:
            figures.append(f"auc {now['auc']:.4f}")
        figures.append(f"{now['samples_per_second']:,.0f} samples/s")
        self._progress.update(f"epoch {epoch}: {', '.join(figures)}")

    def _close_pass(self, complete: bool) -> None:
        """The pass's last step is made. Returns when all workers have ended theirs, and the epoch is saved."""
        self._note_idle(0)
        self._job.leave_pass()
        self._place = None
        self._run.end_pass(complete)
        for report in self._run.reports[len(self.history):]:
            if not self._measured and not report["loss"]:  # an epoch may have been measured by the process before
                del report["loss"]
            self.history.append(report)
            self._progress.line(line(report))
        if not complete and self._run.ended:
            self._raise_stop()

    def _end_epoch(self) -> None:
        """After the body of an epoch: the loop over its batches may have been left early."""
        if self._place is None:
            return
        if self._batches is None:
            raise errors.FailedPreconditionError(
                f"epoch {self._place.epoch} has no batches: for batch in session.batches(data)")
        self._batches.close()
        if self._place is not None:
            complete = self._job.step == self._counted or self._count(self._run, 0.0, 0.0)
            self._close_pass(complete)

    def _finish(self) -> None:
        """The with statement ends well."""
        if self._job.steps is None or self._run.ended:
            return
        if self._place is not None and self._batches is not None:
            self._end_epoch()
        if not self._run.ended:
            self._run.finish()

    def _leave(self, why: str) -> None:
        self._run.fail(why or "the session has ended")
        self._last_epoch = self._run.epoch
        self._running = None  # signals are Python's again
        self._job.session = None
        self._place = None

    def _raise_stop(self) -> None:
        end = self._run.end
        if end == signal.SIGINT:
            raise _interrupt()
        if end > 0:
            raise SystemExit(128 + end)
        if end < 0:
            raise errors.AbortedError("another worker has given up; its log says why")
