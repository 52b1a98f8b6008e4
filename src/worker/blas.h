// The settings that decide how fast libtorch's kernels run in this process.
#pragma once

namespace regatta::worker {

// Call first in main. Where OpenBLAS does not know the CPU it falls back to kernels of 2004 (a quarter of the speed on
// a current Intel); this names the right ones in OPENBLAS_CORETYPE and starts the program again. Does nothing where the
// user set the variable, or where BLAS is another.
void UseKernelsOfThisCpu(char** argv);

// One BLAS thread a training thread, parallelism over batches; memory that a step frees stays with the process.
void SetLibraryDefaults();

}  // namespace regatta::worker
