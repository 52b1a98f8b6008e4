// Feeding, fetching, readers, and files of variables.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferReader(InferContext& context) {
  context.SetKind("Out", VariableKind::kReader);
  return absl::OkStatus();
}

constexpr OpRow kIoRows[] = {
    {"feed", "X", "Out", "col:int", AsDeclared},
    {"fetch", "X", "Out", "col:int", AsDeclared},
    {"save", "X", "", "overwrite:bool=true save_as_fp16:bool=false file_path:string", AsDeclared},
    {"load", "", "Out", "load_as_fp16:bool=false file_path:string seek:long=-1 shape:longs=[]", AsDeclared},
    {"save_combine", "X*", "Y?",
     "overwrite:bool=true save_as_fp16:bool=false file_path:string save_to_memory:bool=false", AsDeclared},
    {"load_combine", "", "Out*", "load_as_fp16:bool=false file_path:string model_from_memory:bool=false", AsDeclared},
    {"read", "Reader", "Out*", "throw_eof_exp:bool=true infer_out:bool=true drop_last:bool=true", AsDeclared},
    {"create_py_reader", "blocking_queue", "Out",
     "shape_concat:ints ranks:ints lod_levels:ints dtypes:ints need_check_feed:ints=[] use_data_config:bool=true "
     "device_index:int=0 device_count:int=1",
     InferReader},
    {"create_double_buffer_reader", "UnderlyingReader", "Out", "place:string=AUTO", InferReader},
    {"delete_var", "X*", "", "", AsDeclared},
};

}  // namespace

std::span<const OpRow> IoRows() { return kIoRows; }

}  // namespace regatta::program
