// _core: what Python sees of the torch-free folders. One file here for each folder of src/ that it shows.
#include <glog/logging.h>
#include <nanobind/nanobind.h>

#include "binding/bind.h"
#include "cluster/environment.h"

namespace {

// As the programs do first: log lines to stderr as they come, no proxy between workers and servers.
void PrepareProcess() {
  regatta::cluster::ClearProxyVariables();
  FLAGS_logtostderr = true;
  FLAGS_log_year_in_prefix = false;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("regattarec");
}

}  // namespace

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // PyTorch keeps tensors, and with them lookups, until the process ends
  m.doc() = "Regatta's tables, servers and data for Python. Use regattarec and regattarec.torch.";
  m.attr("__version__") = REGATTA_VERSION;
  PrepareProcess();
  regatta::binding::BindData(m);
  regatta::binding::BindFleet(m);
  regatta::binding::BindLookup(m);
  regatta::binding::BindProgram(m);
  regatta::binding::BindLayers(m);
  regatta::binding::BindRun(m);
  regatta::binding::BindTrain(m);
}
