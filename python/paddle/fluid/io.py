"""Saves of a program's variables, and their way back."""
import os
from collections.abc import Iterable, Sequence
from typing import Any

from regattarec import _core

from paddle._missing import refuse_missing
from paddle.fluid.executor import Executor, global_scope
from paddle.fluid.framework import Program, Variable, default_main_program

__all__ = ["save_persistables", "load_persistables", "save_params", "load_params", "save_vars", "load_vars",
           "save_inference_model", "load_inference_model"]

_NOT_KEPT = ("reader", "raw")


def _persistables(program: Program) -> list[Variable]:
    return [each for each in program.list_vars() if each.persistable and each.native.kind not in _NOT_KEPT]


def _check(executor: Any, filename: str | None) -> None:
    if not isinstance(executor, Executor):
        raise TypeError(f"executor is a fluid.Executor, not {type(executor).__name__}")
    if filename is not None:
        raise NotImplementedError("filename=: one file for all variables is not there yet; leave it out")


def save_vars(executor: Executor, dirname: str, main_program: Program | None = None, vars: Iterable[Variable | str] | None = None,
              predicate: Any = None, filename: str | None = None) -> None:
    """A file for each variable, in the folder `dirname`: checksummed, and whole or not there."""
    _check(executor, filename)
    global_scope().native.save(_chosen(main_program, vars, predicate), str(dirname))


def load_vars(executor: Executor, dirname: str, main_program: Program | None = None, vars: Iterable[Variable | str] | None = None,
              predicate: Any = None, filename: str | None = None) -> None:
    """What save_vars wrote: all of the variables, or an error that says which one is missing, damaged or another."""
    _check(executor, filename)
    program = main_program or default_main_program()
    global_scope().native.load(program.native.to_bytes(), _chosen(program, vars, predicate), str(dirname))


def _chosen(program: Program | None, variables: Iterable[Variable | str] | None, predicate: Any) -> list[str]:
    if variables is None:
        variables = [each for each in (program or default_main_program()).list_vars() if predicate is None or predicate(each)]
    return [each if isinstance(each, str) else each.name for each in variables]


def save_persistables(executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None) -> None:
    """Everything that training goes on from: parameters, and what optimizers keep beside them."""
    save_vars(executor, dirname, main_program, _persistables(main_program or default_main_program()), filename=filename)


def load_persistables(executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None) -> None:
    """What save_persistables wrote."""
    load_vars(executor, dirname, main_program, _persistables(main_program or default_main_program()), filename=filename)


def save_params(executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None) -> None:
    """The parameters alone."""
    save_vars(executor, dirname, main_program, (main_program or default_main_program()).all_parameters(), filename=filename)


def load_params(executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None) -> None:
    """What save_params wrote."""
    load_vars(executor, dirname, main_program, (main_program or default_main_program()).all_parameters(), filename=filename)


def save_inference_model(dirname: str, feeded_var_names: Sequence[str], target_vars: Sequence[Variable], executor: Executor,
                         main_program: Program | None = None, model_filename: str | None = None,
                         params_filename: str | None = None) -> list[str]:
    """The part of a program that gives the targets, and its parameters, as a folder; the names of the targets."""
    _check(executor, params_filename)
    program = main_program or default_main_program()
    targets = [each.name for each in ([target_vars] if isinstance(target_vars, Variable) else target_vars)]
    model = Program(program.native.inference([str(each) for each in feeded_var_names], targets))
    save_vars(executor, dirname, model, _persistables(model))
    model.native.save(os.path.join(dirname, model_filename or "__model__"))
    return targets


def load_inference_model(dirname: str, executor: Executor, model_filename: str | None = None,
                         params_filename: str | None = None) -> tuple[Program, list[str], list[Variable]]:
    """(program, names of its feeds, its targets) of a folder that save_inference_model wrote."""
    _check(executor, params_filename)
    program = Program(_core.Program.load(os.path.join(dirname, model_filename or "__model__")))
    load_vars(executor, dirname, program, _persistables(program))
    return program, program.native.feeds, [program.global_block().var(name) for name in program.native.fetches]


__getattr__ = refuse_missing(__name__, globals())
