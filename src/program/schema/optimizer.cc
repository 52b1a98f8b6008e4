// The updates of a parameter by its gradient, a step each. The outputs are the variables of the inputs.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferUpdate(InferContext& context) {
  const Shape &parameter = context.ShapeOf("Param"), &gradient = context.ShapeOf("Grad");
  if (!parameter.empty() && !gradient.empty() && ElementCount(parameter) != ElementCount(gradient))
    return context.Refuse({"Param", "Grad"}, "want one shape for both");
  return absl::OkStatus();
}

constexpr OpRow kOptimizerRows[] = {
    {"sgd", "Param LearningRate Grad", "ParamOut", "", InferUpdate},
    {"momentum", "Param Grad Velocity LearningRate", "ParamOut VelocityOut", "mu:float use_nesterov:bool=false",
     InferUpdate},
    {"lars_momentum", "Param Grad Velocity LearningRate", "ParamOut VelocityOut",
     "mu:float lars_coeff:float=0.001 lars_weight_decay:float=0.0005", InferUpdate},
    {"adagrad", "Param Grad Moment LearningRate", "ParamOut MomentOut", "epsilon:float=1e-6", InferUpdate},
    {"decayed_adagrad", "Param Grad Moment LearningRate", "ParamOut MomentOut", "decay:float=0.95 epsilon:float=1e-6",
     InferUpdate},
    {"adadelta", "Param Grad AvgSquaredGrad AvgSquaredUpdate", "ParamOut AvgSquaredGradOut AvgSquaredUpdateOut",
     "rho:float=0.95 epsilon:float=1e-6", InferUpdate},
    {"adam", "Param Grad LearningRate Moment1 Moment2 Beta1Pow Beta2Pow Beta1Tensor? Beta2Tensor?",
     "ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut",
     "beta1:float=0.9 beta2:float=0.999 epsilon:float=1e-8 lazy_mode:bool=false "
     "min_row_size_to_use_multithread:int=1000",
     InferUpdate},
    {"adamax", "Param Grad LearningRate Moment InfNorm Beta1Pow", "ParamOut MomentOut InfNormOut",
     "beta1:float=0.9 beta2:float=0.999 epsilon:float=1e-8", InferUpdate},
    {"lamb", "Param Grad LearningRate Moment1 Moment2 Beta1Pow Beta2Pow", "ParamOut Moment1Out Moment2Out",
     "weight_decay:float beta1:float=0.9 beta2:float=0.999 epsilon:float=1e-6", InferUpdate},
    {"rmsprop", "Param MeanSquare MeanGrad? LearningRate Grad Moment", "ParamOut MomentOut MeanSquareOut MeanGradOut?",
     "epsilon:float=1e-10 decay:float=0.9 momentum:float=0 centered:bool=false", InferUpdate},
    {"ftrl", "Param SquaredAccumulator LinearAccumulator Grad LearningRate", "ParamOut SquaredAccumOut LinearAccumOut",
     "l1:float=0 l2:float=0 lr_power:float=-0.5", InferUpdate},
    {"dpsgd", "Param Grad LearningRate", "ParamOut", "clip:float=10 batch_size:float=16 sigma:float=1 seed:long=0",
     InferUpdate},
};

}  // namespace

std::span<const OpRow> OptimizerRows() { return kOptimizerRows; }

}  // namespace regatta::program
