// Inputs: images, sound, prompts, rows of another network.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

// Projector from an encoder's rows to input rows of a language model. A square of merge x merge neighbours
// of an image, or some rows of a sound, become one row: side by side ("pixel shuffle") or as their mean.
struct Projector {
  bool mean = false;
  bool merged = false;  // a product [dim, dim * joined] comes first; its columns are stored by channel
  NormSpec norm = {};   // norm of the joined rows
  // Activation of the hidden layer between two matrices; nullopt: one matrix without a hidden layer.
  std::optional<Activation> activation = {};
  int hidden = 0;  // its width
  bool bias = false;
  bool transposed = false;  // stored [inputs, outputs], under their names alone
};

// A channel's value v, 0 to 255, counts as (v * scale - mean) / std.
struct PixelScale {
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};

  float of(float value, std::size_t channel) const { return (value * scale - mean[channel]) / std[channel]; }
};

// Input of an image encoder (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021), in place of
// embeddings: a grid of square patches. If all images have one size, positions are learned. Otherwise they
// are rotary with two axes, height and width, and optionally learned as well.
struct ImageInput {
  int image_size = 0;  // pixels of a square image's side; 0: images have any size
  int patch_size = 0;
  int merge = 1;
  int frames = 0;        // frames of a video in a patch, all equal for an image; 0: images only
  float time_steps = 0;  // of the axis of time, that a second of a video has; 0: a patch is one
  bool bias = true;      // the patch embedding has a bias
  bool channels_last = false;  // its columns are stored by row, column, channel, and have no axes
  // The first row is a learned one with a separate position, before those of the patches. Layers see it,
  // the projector does not.
  bool class_token = false;
  int window = 0;  // tokens of a side of the windows of local layers
  // For images of any size: side of the grid of learned positions, if not 0. The grid is stretched over an
  // image's patches (position_grid.h).
  int position_side = 0;
  // Alternative to the grid: number of learned positions for columns, followed by the same number for rows.
  // A patch gets the sum of two.
  int axis_positions = 0;
  int out_dim = 0;          // width of a token's row
  bool row_breaks = false;  // the text has separator tokens between the rows of an image's tokens
  // An image is cut into squares of image_size, and the whole image comes before them. The tokens of the
  // squares form one grid, and a learned token follows each row of the grid (MediaPart::Tiles; Liu et al.,
  // "LLaVA-NeXT", 2024).
  bool tiled = false;
  // The whole image comes after the squares and is made of them. A learned row follows each of its rows,
  // and another one separates the squares from it: the projector makes rows of the text of them. Padding
  // patches are not seen by others (MediaPart::Tiles; Phi-4-multimodal: Abouelenin et al., 2025).
  bool whole_last = false;
  Projector projector = {};
  // After each of these layers another projector makes rows of the patches. The language model adds the
  // first ones to its residual after its first layer, and so on (Meng et al., "DeepStack", 2024).
  std::vector<int> deep_layers = {};
  Projector deep_projector = {};
  PixelScale pixels = {};

  bool placed() const { return position_side > 0 || axis_positions > 0; }  // has both kinds of positions
  int unit() const { return patch_size * merge; }                          // pixels of a token's side
  int square() const { return merge * merge; }                             // patches of a token
  int patch_values() const { return 3 * std::max(1, frames) * patch_size * patch_size; }
  int side() const { return image_size / unit(); }  // tokens of a square image's side
  // Width of a token's input to the language model: its row, and those of the deep layers.
  std::int64_t row_dim() const { return std::int64_t{out_dim} * (1 + std::ssize(deep_layers)); }
};

// Input of a sound encoder (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision",
// 2022), in place of embeddings: a log-mel spectrogram of fixed length, after two convolutions of width
// three. The second has stride two.
struct SoundInput {
  int mels = 0;
  int rows = 0;  // that the encoder makes
  // For sound in prompts: number of rows that become one row of the text, of out_dim. 0: layers of the text
  // attend to the encoder's rows.
  int joined = 0;
  bool whole =
      false;  // with joined: it sees only windows of full length, including the silence after a sound
  int out_dim = 0;
  Projector projector = {};

  int frames() const { return 2 * rows; }
  int tokens() const { return rows / joined; }  // of a sound as long as the encoder takes it
};

constexpr int kSoundTaps = 3;  // frames that a convolution sees

// Input of a prompt encoder (Raffel et al., "Exploring the Limits of Transfer Learning", 2020). The
// language model's layers attend to its rows, one for each token. The output text begins with the same
// tokens for every prompt.
struct SourceInput {
  int rows = 0;            // at most
  std::vector<int> begin;  // tokens
};

// Input of a network that proposes for another, beside the embedding of a token: the row that the other
// made for the token before it (multi-token prediction: DeepSeek-V3, 2024; EAGLE: Li et al., ICML 2024;
// EAGLE-3: Li et al., 2025).
struct HiddenInput {
  int dim = 0;    // width of the other's residual
  int vocab = 0;  // number of token ids that this network reads
  // The row is the other's residual before each of these layers, side by side. Without layers, it is the
  // other's normed residual after the last layer. For all draft tokens except the first, the row comes from
  // this network's own residual.
  std::vector<int> layers = {};
  NormSpec token_norm = {};  // norm of the embedding
  NormSpec hidden_norm = {};
  // If true, the residual is a product of both, concatenated. If false, it is a product of the row, and the
  // first layer's mixer sees embedding and row concatenated, each with its norm.
  bool joined = true;
  bool hidden_first = false;     // joined: the row comes before the embedding
  bool joint_bias = false;       // the product has a bias
  bool normed_residual = false;  // not joined: the residual has hidden_norm, too
  bool normed_output = false;    // the network's own rows are taken after its final norm
  // Else the other's matrices are used.
  bool own_embedding = false;
  bool own_output = false;

  std::int64_t row() const { return std::int64_t{dim} * (layers.empty() ? 1 : std::ssize(layers)); }
};

// Names of HiddenInput's tensors.
struct HiddenNames {
  std::string token_norm = {};
  std::string hidden_norm = {};
  std::string joint = {};
};

// A network's layer of multi-token prediction: how its tensors are called, without the prefix.
struct Predictor {
  std::vector<std::string> prefixes = {};  // if empty, the network's
  std::size_t like = 0;                    // the layer of the network that it is like
  std::string layer;
  HiddenNames names;
  std::string final_norm = {};  // empty if there is no final norm
  bool hidden_first = false;    // as the next field: see HiddenInput
  bool normed_output = false;
};

}  // namespace octavo
