// Mixtures of experts.
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
  each,                // a tensor for each; '{}' in its name is the expert's number
  stacked,             // one tensor [experts, outputs, inputs]
  stacked_transposed,  // one tensor [experts, inputs, outputs]
  flat,                // one tensor [experts * hidden units, dim]
};

// MLPs of which a router selects a few for each token (Shazeer et al., 2017).
struct Experts {
  int count = 0;
  RouterRule router;
  bool router_bias = false;
  bool choice_bias = false;  // RouteArgs::bias
  int identities = 0;        // identity experts, after the others, whose output is their input
  int vocab =
      0;  // if not 0, a table of token ids chooses the experts, and the router gives only their weights
  bool scales = false;             // the output of each is multiplied by one number
  // norm of the residual, for the router; without a norm, the router reads the experts' input
  NormSpec router_norm = {};
  Mlp expert;                      // each of the experts
  std::optional<Mlp> shared = {};  // a shared expert, which every token passes
  bool shared_gate = false;        // the shared expert's weight is the sigmoid of a gate
  bool weigh_input = false;  // the weight of the one chosen expert is applied to its input, not to its output
  bool sum_bias = false;     // their sum has a bias; not with `shared`
  // If not 0, experts read a product of the input with this width. Another matrix widens their sum to the
  // network's width (Nemotron 3, 2026).
  int latent = 0;

  // Names in the checkpoint.
  struct Names {
    std::string router = "mlp.gate";
    // router_norm and scales are whole names.
    std::string router_norm = {};
    std::string scales = {};
    std::string choice_bias = "mlp.gate.e_score_correction_bias";
    // choice_bias is stored [1, experts].
    bool choice_bias_row = false;
    // Full name of the table Experts::vocab.
    std::string table = {};
    ExpertStorage storage = ExpertStorage::each;
    std::vector<std::string> up = {"mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj"};
    std::string down = "mlp.experts.{}.down_proj";
    // [experts, outputs]
    std::vector<std::string> up_bias = {};
    std::string down_bias = {};
    // name of the bias Experts::sum_bias
    std::string sum_bias = {};
    // Rows of gate and up alternate.
    bool interleaved = false;
    // names of the matrices of Experts::latent
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
