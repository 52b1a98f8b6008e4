#include "worker/process.h"

#include <glog/logging.h>

#include <cstdio>

#include "cluster/environment.h"
#include "worker/blas.h"

namespace regatta::worker {

void PrepareProcess(char** argv) {
  UseKernelsOfThisCpu(argv);
  SetLibraryDefaults();
  cluster::ClearProxyVariables();
  FLAGS_logtostderr = true;
  FLAGS_log_year_in_prefix = false;  // I0318 21:47:01.298220 …, as scripts expect it
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("regatta");
  setvbuf(stdout, nullptr, _IOLBF, 0);
}

}  // namespace regatta::worker
