"""What the epochs of a session came to."""
import typing

from regattarec import errors


class History(list[dict[str, typing.Any]]):
    """A dict for each epoch: epoch, samples, loss, auc …; of all workers together at the first one."""

    def plot(self, *names: str) -> typing.Any:
        """Draws the named figures over the epochs, or loss and auc where they are; gives matplotlib's axes."""
        if not self:
            raise errors.FailedPreconditionError("no epoch is over yet: there is nothing to plot")
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise errors.FailedPreconditionError("plot needs matplotlib: pip install matplotlib") from error
        known = [name for name in self[-1] if name != "epoch"]
        names = names or tuple(name for name in ("loss", "auc", "rmse") if name in known) or ("samples_per_second",)
        for name in names:
            if name not in known:
                raise errors.NotFoundError(f"no epoch has '{name}'; there are {', '.join(known)}")
        _, axes = pyplot.subplots(1, len(names), squeeze=False, figsize=(4.5 * len(names), 3.2), layout="tight")
        for ax, name in zip(axes[0], names):
            ax.plot([entry["epoch"] for entry in self], [entry.get(name) for entry in self], marker="o")
            ax.set_xlabel("epoch")
            ax.set_title(name)
        return axes[0]

    def __str__(self) -> str:
        return "\n".join(line(entry) for entry in self)


def line(entry: dict[str, typing.Any]) -> str:
    """One epoch as a line.

    >>> line({"epoch": 0, "samples": 1000, "loss": 0.51234, "auc": 0.75, "seconds": 2.0, "samples_per_second": 500.0})
    'epoch 0: loss 0.51234, auc 0.75000, 1,000 samples in 2.0 s, 500 samples/s'
    """
    figures = [f"{name} {entry[name]:.5f}" for name in ("loss", "auc", "mse", "rmse") if name in entry
               and (name != "rmse" or "mse" in entry)]
    figures += [f"{entry['samples']:,} samples in {entry['seconds']:.1f} s",
                f"{entry['samples_per_second']:,.0f} samples/s"]
    return f"epoch {entry['epoch']}: {', '.join(figures)}"
