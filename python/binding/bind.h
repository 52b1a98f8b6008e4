// The parts of the module: each file binds the folder of src/ that it is named after.
#pragma once

#include <nanobind/nanobind.h>

namespace regatta::binding {

void BindData(nanobind::module_& m);
void BindFleet(nanobind::module_& m);
void BindLayers(nanobind::module_& m);
void BindLookup(nanobind::module_& m);
void BindProgram(nanobind::module_& m);
void BindRun(nanobind::module_& m);
void BindTrain(nanobind::module_& m);

}  // namespace regatta::binding
