// Configuration (spec) and tensor names of a mixture of experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/operators/experts.h"
#include "model/blocks/mlp.h"
#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// How the experts' matrices are stored in a checkpoint.
enum class ExpertStorage : std::uint8_t {
  each,                // one tensor per expert; '{}' in the name is the expert's index
  stacked,             // one tensor [experts, outputs, inputs]
  stacked_transposed,  // one tensor [experts, inputs, outputs]
  flat,                // one tensor [experts * hidden units, dim]
};

// MLPs from which a router selects a few for each token (Shazeer et al., 2017).
struct Experts {
  int count = 0;
  RouterRule router;
  bool router_bias = false;
  bool choice_bias = false;  // the selection has a bias (RouteArgs::bias)
  // number of identity experts, which return their input; their indices follow those of the other experts
  int identities = 0;
  // if not 0: number of rows of a table that lists the experts of each token id, so that the router only
  // computes their weights
  int vocab = 0;
  bool scales = false;  // the output of each expert is multiplied by one number per expert
  // If set, the router reads the residual after this norm. Otherwise the router reads the experts' input.
  NormSpec router_norm = {};
  Mlp expert;
  std::optional<Mlp> shared = {};  // processes every token
  bool shared_gate = false;        // the shared expert's output is multiplied by the sigmoid of a gate
  // each token has one expert, whose weight multiplies its input instead of its output
  bool weigh_input = false;
  bool sum_bias = false;  // the sum of the experts has a bias; not with `shared`
  // If not 0, a projection reduces the experts' input to this width, and a second one maps the sum of the
  // experts to the network's width (Nemotron 3, 2026).
  int latent = 0;

  struct Names {
    std::string router = "mlp.gate";
    // full names
    std::string router_norm = {};
    std::string scales = {};
    std::string choice_bias = "mlp.gate.e_score_correction_bias";
    bool choice_bias_row = false;
    // Full name of the table (Experts::vocab).
    std::string table = {};
    ExpertStorage storage = ExpertStorage::each;
    std::vector<std::string> up = {"mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj"};
    std::string down = "mlp.experts.{}.down_proj";
    // shapes of up_bias and down_bias: [experts, outputs]
    std::vector<std::string> up_bias = {};
    std::string down_bias = {};
    std::string sum_bias = {};
    // true: the rows of gate and up alternate in one tensor
    bool interleaved = false;
    // The two matrices of Experts::latent: before and after the experts.
    std::string latent = {};
    std::string lift = {};
    std::vector<std::string> shared_up = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"};
    std::string shared_down = "mlp.shared_expert.down_proj";
    std::string shared_gate = "mlp.shared_expert_gate";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
