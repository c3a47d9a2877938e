// The parameters of a network, derived from its spec: for each, the checkpoint tensors that hold it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/spec.h"
#include "weights/slots.h"

namespace octavo {

// Rows [begin, begin + count) of a matrix, or elements of a vector.
struct RowRange {
  std::int64_t begin;
  std::int64_t count;
};

// A matrix [rows, cols]: the tensors stacked by rows.
struct MatrixParameter {
  std::vector<Slot> parts;      // empty: the network has no such matrix
  bool transposed = false;      // each tensor is stored [cols, rows]
  std::vector<RowRange> order;  // not empty: the rows of the only tensor are taken in this order
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

// A vector, kept in f32: the tensors one after the other.
struct VectorParameter {
  std::vector<Slot> parts;  // empty: the network has no such vector
  std::vector<RowRange> order;
  float offset = 0;  // added to each element
  std::int64_t size = 0;
};

struct LinearParameter {
  MatrixParameter weight;
  VectorParameter bias;
};

struct NormParameter {
  NormSpec spec;
  VectorParameter weight;
  VectorParameter bias;
};

struct LayerParameters {
  NormParameter attention_norm, attention_post_norm, mlp_norm, mlp_post_norm, q_norm, k_norm;
  LinearParameter qkv, out, up, down;
};

struct Parameters {
  MatrixParameter embedding, positions, lm_head;  // lm_head: no parts when tied
  NormParameter final_norm;
  std::vector<LayerParameters> layers;
  std::vector<std::string> ignorable;  // tensors that may be there, as in Names
};

// The parameters of a network under one of its Names::prefixes.
Parameters parameters_of(const ModelSpec& spec, const std::string& prefix);

// The same, under the prefix that the checkpoint uses, when it holds exactly these tensors. Errors: see
// check_slots.
Result<Parameters> checked_parameters(const ModelSpec& spec, const Checkpoint& checkpoint);

// Every matrix and every vector, in the order of the forward pass, absent ones too. Visit takes
// MatrixParameter& and VectorParameter& (const where `parameters` is).
template <class P, class Visit>
void for_each_parameter(P& parameters, Visit&& visit) {
  const auto visit_norm = [&](auto& norm) {
    visit(norm.weight);
    visit(norm.bias);
  };
  const auto visit_linear = [&](auto& linear) {
    visit(linear.weight);
    visit(linear.bias);
  };
  visit(parameters.embedding);
  visit(parameters.positions);
  for (auto& layer : parameters.layers) {
    for (auto* norm : {&layer.attention_norm, &layer.attention_post_norm, &layer.mlp_norm,
                       &layer.mlp_post_norm, &layer.q_norm, &layer.k_norm}) {
      visit_norm(*norm);
    }
    for (auto* linear : {&layer.qkv, &layer.out, &layer.up, &layer.down}) visit_linear(*linear);
  }
  visit_norm(parameters.final_norm);
  visit(parameters.lm_head);
}

}  // namespace octavo
