// What the distributed transpiler puts into trainers' and servers' programs.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

constexpr OpRow kDistributedRows[] = {
    {"send", "X*", "Out*?",
     "trainer_id:int=0 epmap:strings=[] sections:longs=[] send_varnames:strings=[] num:int=0 merge_add:bool=false "
     "use_send_handler:bool=true",
     AsDeclared},
    {"recv", "X*?", "Out*",
     "epmap:strings=[] trainer_id:int=0 with_barrier:bool=true varnames:strings=[] recv_varnames:strings=[] "
     "do_not_run:int=0",
     AsDeclared},
    {"send_barrier", "X*?", "Out*?", "trainer_id:int=0 endpoints:strings=[] half_async:bool=false", AsDeclared},
    {"fetch_barrier", "X*?", "Out*?", "trainer_id:int=0 endpoints:strings=[]", AsDeclared},
    {"listen_and_serv", "X*?", "",
     "endpoint:string pserver_id:int=-1 grad_to_block_id:strings=[] distributed_mode:int=0 sync_mode:bool=true "
     "dc_asgd:bool=false optimize_blocks:blocks=[] prefetch_var_name_to_block_id:strings=[] "
     "sparse_grad_to_param:strings=[] Fanin:int=1 checkpint_block_id:int=-1 lr_decay_block_id:int=-1 "
     "rpc_get_thread_num:int=1 rpc_send_thread_num:int=1 rpc_prefetch_thread_num:int=1",
     AsDeclared},
    {"checkpoint_notify", "", "",
     "epmap:strings=[] dir:string lookup_table:string= slice_varnames:strings=[] remote_varnames:strings=[] "
     "trainer_id:int=0",
     AsDeclared},
    {"prefetch", "X*", "Out*", "trainer_id:int=0 epmap:strings=[]", AsDeclared},
    {"distributed_lookup_table", "Ids* W", "Outputs*",
     "table_names:strings=[] height_sections:longs=[] endpoints:strings=[] trainer_id:int=0 "
     "lookup_table_version:string=lookup_table padding_idx:long=-1 dtype:int=5",
     AsDeclared},
    {"lookup_sparse_table", "W Ids", "Out", "padding_idx:long=-1 auto_grown_table:bool=true is_test:bool=false",
     AsDeclared},
    {"split_byref", "X", "Out*", "sections:longs=[] num:int=0", AsDeclared},
    {"split_ids", "Ids*", "Out*", "", AsDeclared},
    {"split_selected_rows", "X", "Out*", "height_sections:longs=[]", AsDeclared},
    {"merge_ids", "Ids* Rows* X*", "Out*", "", AsDeclared},
    {"ref_by_trainer_id", "X* TrainerId", "Out", "", AsDeclared},
    {"recv_save", "", "",
     "dtype:int=5 overwrite:bool=true file_path:string shape:longs=[] slice_varnames:strings=[] "
     "remote_varnames:strings=[] slice_shapes:strings=[] endpoints:strings=[] trainer_id:int=0",
     AsDeclared},
    {"fake_init", "", "Out", "shape:longs=[] dtype:int=5", AsDeclared},
};

}  // namespace

std::span<const OpRow> DistributedRows() { return kDistributedRows; }

}  // namespace regatta::program
