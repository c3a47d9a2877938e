// Builds a network (network.h) from its spec (spec.h): chooses the class for every part and names its
// tensors.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/blocks/shared_transformer.h"
#include "model/network.h"

namespace octavo {

class NetworkBuilder {
 public:
  // `prefix` precedes every tensor name. Both arguments must outlive the builder.
  NetworkBuilder(const ModelSpec& spec, const std::string& prefix)
      : spec_(spec), prefix_(prefix), top_(spec.names, prefix) {}

  Network build();

 private:
  void add_ends();
  void add_inputs();
  void add_heads();
  // Adds the first input: an image or audio encoder's, or the embedding of tokens.
  void add_first_input();
  std::unique_ptr<ResidualScheme> make_residual() const;
  Layer make_layer(std::size_t index);
  void add_halves(const LayerSpec& spec, const Namer& name, std::size_t index, Layer& layer);
  std::unique_ptr<Phase> make_half(const LayerSpec& spec, std::unique_ptr<Block> block, HalfNorms norms,
                                   float scale) const;
  std::unique_ptr<Phase> make_mixer_half(const LayerSpec& spec, const Namer& name, std::size_t index);
  std::unique_ptr<Phase> make_feed_forward_half(const LayerSpec& spec, const Namer& name,
                                                std::size_t index) const;
  // Makes a half that reads a mixture of sources (AttendedSources).
  std::unique_ptr<Phase> make_source_half(std::unique_ptr<Block> block, HalfNorms norms, const Namer& name,
                                          std::size_t index, bool mixer) const;
  std::unique_ptr<Phase> make_parallel_halves(const LayerSpec& spec, const Namer& name) const;
  HalfNorms mixer_norms(const LayerSpec& spec, const Namer& name) const;
  HalfNorms feed_forward_norms(const LayerSpec& spec, const Namer& name) const;
  void add_behind(std::size_t index, Layer& layer) const;
  Namer namer_of(std::size_t layer) const;
  std::string name_of(std::size_t layer) const;
  MatrixParameter own_rows(MatrixParameter table) const;
  MatrixParameter output_matrix() const;

  template <class Kind, class... Args>
  static void add(Layer& layer, Args&&... args) {
    layer.phases.push_back(std::make_unique<Kind>(std::forward<Args>(args)...));
  }
  template <class Kind, class... Args>
  void add_input(Args&&... args) {
    network_.inputs.push_back(std::make_unique<Kind>(std::forward<Args>(args)...));
  }
  template <class Variant>
  std::unique_ptr<Block> block_of(const Variant& kind, const Namer& name) const {
    return std::visit([&](const auto& of) { return make_block(of, name, spec_.dim); }, kind);
  }

  const ModelSpec& spec_;
  const std::string& prefix_;
  const Namer top_;
  Network network_;
  // Key: index of the first layer with the block, which owns the shared tensors.
  std::map<int, const SharedTransformerBlock*> shared_;
};

}  // namespace octavo
