"""The Fluid API: a network is a program, which an executor runs.

    >>> import paddle.fluid as fluid
    >>> x = fluid.layers.data(name="x", shape=[2])
    >>> y = fluid.layers.fc(input=x, size=1, param_attr=fluid.initializer.Constant(0.5))
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> exe.run(fluid.default_startup_program())
    []
    >>> exe.run(feed={"x": [[1.0, 2.0]]}, fetch_list=[y])[0].tolist()
    [[1.5]]
"""
from paddle._missing import refuse_missing
from paddle.fluid import (backward, clip, core, data_feeder, executor, framework, initializer, io, layers, lod_tensor, optimizer,
                          param_attr, regularizer, unique_name)
from paddle.fluid.backward import append_backward
from paddle.fluid.core import CPUPlace, CUDAPlace, LoDTensor, Scope, is_compiled_with_cuda
from paddle.fluid.data_feeder import DataFeeder
from paddle.fluid.executor import Executor, global_scope, scope_guard
from paddle.fluid.framework import Program, Variable, default_main_program, default_startup_program, name_scope, program_guard
from paddle.fluid.input import data, embedding
from paddle.fluid.lod_tensor import create_lod_tensor
from paddle.fluid.param_attr import ParamAttr

__all__ = ["backward", "clip", "core", "data_feeder", "executor", "framework", "initializer", "io", "layers", "optimizer",
           "param_attr", "regularizer", "unique_name", "append_backward", "CPUPlace", "CUDAPlace", "LoDTensor", "Scope",
           "is_compiled_with_cuda", "DataFeeder", "Executor", "global_scope", "scope_guard", "Program", "Variable",
           "default_main_program", "default_startup_program", "name_scope", "program_guard", "ParamAttr", "data", "embedding",
           "create_lod_tensor", "lod_tensor"]

__getattr__ = refuse_missing(__name__, globals())
