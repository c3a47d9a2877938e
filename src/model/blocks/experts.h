// Spec and tensor names of mixtures of experts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/operators/experts.h"
#include "model/blocks/mlp.h"
#include "model/norm_spec.h"

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// Layout of the experts' matrices in a checkpoint.
enum class ExpertStorage : std::uint8_t {
  each,                // one tensor per expert; '{}' in the name is replaced by the expert's index
  stacked,             // one tensor [experts, outputs, inputs]
  stacked_transposed,  // one tensor [experts, inputs, outputs]
  flat,                // one tensor [experts * hidden units, dim]
};

// MLPs of which a router selects a few for each token (Shazeer et al., 2017).
struct Experts {
  int count = 0;
  RouterRule router;
  bool router_bias = false;
  bool choice_bias = false;  // whether the selection has a bias (RouteArgs::bias)
  int identities = 0;  // number of identity experts, which follow the others; their output is their input
  int vocab = 0;  // number of token ids in a table that selects the experts (the router then only computes
                  // their weights); 0: no table
  bool scales = false;  // whether the output of each expert is multiplied by one number
  // Norm of the residual before the router reads it. Without this norm, the router reads the experts' input.
  NormSpec router_norm = {};
  Mlp expert;                      // spec of each expert
  std::optional<Mlp> shared = {};  // shared expert, which processes every token
  bool shared_gate = false;  // whether the shared expert's output is multiplied by the sigmoid of a gate
  bool weigh_input = false;  // whether the weight of the single selected expert is applied to its input
                             // instead of its output
  bool sum_bias = false;     // whether the experts' sum has a bias; not with `shared`
  // Width of the experts' input, which is a projection of the layer's input; another matrix projects the sum
  // of their outputs to the network's width (Nemotron 3, 2026). 0: no such projections.
  int latent = 0;

  struct Names {
    std::string router = "mlp.gate";
    // router_norm and scales are full tensor names.
    std::string router_norm = {};
    std::string scales = {};
    std::string choice_bias = "mlp.gate.e_score_correction_bias";
    // Whether choice_bias is stored as [1, experts].
    bool choice_bias_row = false;
    // Full tensor name of the table (Experts::vocab).
    std::string table = {};
    ExpertStorage storage = ExpertStorage::each;
    std::vector<std::string> up = {"mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj"};
    std::string down = "mlp.experts.{}.down_proj";
    // [experts, outputs]
    std::vector<std::string> up_bias = {};
    std::string down_bias = {};
    // bias of the sum (Experts::sum_bias)
    std::string sum_bias = {};
    // true: rows of gate and up alternate.
    bool interleaved = false;
    // names of the two matrices of Experts::latent
    std::string latent = {};
    std::string lift = {};
    std::vector<std::string> shared_up = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"};
    std::string shared_down = "mlp.shared_expert.down_proj";
    std::string shared_gate = "mlp.shared_expert_gate";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const Experts& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
