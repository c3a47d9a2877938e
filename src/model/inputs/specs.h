// Specs of inputs: images, sound, prompts, and rows of another network.
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

// Projector from an encoder's rows to input rows of a language model. Several rows become one row: merge x
// merge neighbouring patches of an image, or consecutive rows of a sound. They are concatenated ("pixel
// shuffle") or averaged.
struct Projector {
  bool mean = false;
  bool merged = false;  // whether a product with a matrix [dim, dim * joined] precedes the other layers; its
                        // columns are stored by channel
  NormSpec norm = {};   // norm of the joined rows
  // Activation of the hidden layer between two matrices; nullopt: one matrix without a hidden layer.
  std::optional<Activation> activation = {};
  int hidden = 0;  // width of the hidden layer
  bool bias = false;
  bool transposed = false;  // whether matrices are stored as [inputs, outputs], under names without ".weight"
};

// Scaling of channel values: v in 0 .. 255 becomes (v * scale - mean) / std.
struct PixelScale {
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};

  float of(float value, std::size_t channel) const { return (value * scale - mean[channel]) / std[channel]; }
};

// Input of an image encoder (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021): a grid of square
// patches. If all images have one size, positions are learned. Otherwise, positions are rotary with the axes
// height and width, and some encoders also have learned positions.
struct ImageInput {
  int image_size = 0;  // side of a square image, in pixels; 0: images of any size
  int patch_size = 0;
  int merge = 1;
  int frames = 0;        // number of video frames in a patch (an image repeats its frame); 0: images only
  float time_steps = 0;  // positions on the time axis per second of a video; 0: one position per patch
  bool bias = true;      // whether the patch embedding has a bias
  bool channels_last = false;  // whether the columns of the embedding are stored by row, column, channel, as
                               // a matrix
  // Whether a learned row with a separate position precedes the patches. Layers read it, the projector does
  // not.
  bool class_token = false;
  int window = 0;  // side of the windows of local layers, in tokens
  // For images of any size: side of the grid of learned positions; 0: no grid. The grid is stretched over the
  // image's patches (position_grid.h).
  int position_side = 0;
  // Alternative to the grid: number of learned positions for columns, and the same number for rows. The
  // position of a patch is the sum of the positions of its column and its row.
  int axis_positions = 0;
  int out_dim = 0;          // width of a token's row
  bool row_breaks = false;  // whether the text has separator tokens between the rows of an image's tokens
  // Whether images are cut into squares of side image_size. The complete image (scaled down) comes first. The
  // tokens of the squares form one grid, and a learned token follows each row of the grid (MediaPart::Tiles;
  // Liu et al., "LLaVA-NeXT", 2024).
  bool tiled = false;
  // Whether the complete image comes after the squares. A learned row follows each of its rows, and another
  // learned row separates the squares from it; both pass through the projector. Other patches do not see
  // padding patches (MediaPart::Tiles; Phi-4-multimodal: Abouelenin et al., 2025).
  bool whole_last = false;
  Projector projector = {};
  // Layers after which further projectors make rows from the patches. The language model adds the rows of the
  // first of these projectors to its residual after its first layer, and so on (Meng et al., "DeepStack",
  // 2024).
  std::vector<int> deep_layers = {};
  Projector deep_projector = {};
  PixelScale pixels = {};

  // Returns whether patches have learned positions in addition to rotary ones.
  bool placed() const { return position_side > 0 || axis_positions > 0; }
  int unit() const { return patch_size * merge; }  // returns the side of a token, in pixels
  int square() const { return merge * merge; }     // returns the number of patches per token
  int patch_values() const { return 3 * std::max(1, frames) * patch_size * patch_size; }
  int side() const { return image_size / unit(); }  // returns the side of a square image, in tokens
  // Returns the width of a token's input to the language model: its row, and the rows of the deep layers.
  std::int64_t row_dim() const { return std::int64_t{out_dim} * (1 + std::ssize(deep_layers)); }
};

// Input of a sound encoder (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision",
// 2022): a log-mel spectrogram of fixed length, after two convolutions of width three, the second with stride
// two.
struct SoundInput {
  int mels = 0;
  int rows = 0;  // number of rows that the encoder computes
  // Number of encoder rows that become one input row, of width out_dim, of the language model. 0: layers of
  // the language model attend to the encoder's rows instead.
  int joined = 0;
  bool whole = false;  // with `joined`: whether the encoder processes only windows of full length, including
                       // the silence after a sound
  int out_dim = 0;
  Projector projector = {};

  int frames() const { return 2 * rows; }
  int tokens() const { return rows / joined; }  // returns the number of tokens of a sound of maximum length
};

constexpr int kSoundTaps = 3;  // number of frames in a window of a convolution

// Input of a prompt encoder (Raffel et al., "Exploring the Limits of Transfer Learning", 2020). Layers of the
// language model attend to the encoder's rows, one per token. All outputs begin with the same tokens.
struct SourceInput {
  int rows = 0;            // maximum number of rows
  std::vector<int> begin;  // first tokens of every output
};

// Input of a drafter, in addition to the token's embedding: the row that the target network computed for the
// previous token (multi-token prediction: DeepSeek-V3, 2024; EAGLE: Li et al., ICML 2024; EAGLE-3: Li et al.,
// 2025).
struct HiddenInput {
  int dim = 0;    // width of the target's residual
  int vocab = 0;  // number of token ids that the drafter supports
  // The row is the concatenation of the target's residual before each of these layers. Empty: the row is the
  // target's residual after the final norm. For all draft tokens except the first, the row is the drafter's
  // residual.
  std::vector<int> layers = {};
  NormSpec token_norm = {};  // norm of the embedding
  NormSpec hidden_norm = {};
  // true: the residual is a product of the concatenated embedding and row. false: the residual is a product
  // of the row, and the first layer's mixer reads the concatenation of embedding and row, each after its
  // norm.
  bool joined = true;
  bool hidden_first = false;     // joined: whether the row precedes the embedding
  bool joint_bias = false;       // joined: whether the product has a bias
  bool normed_residual = false;  // not joined: whether hidden_norm is also applied to the residual
  bool normed_output = false;    // whether the drafter's rows are taken after its final norm
  // Whether the drafter has a separate matrix; otherwise it uses the target's.
  bool own_embedding = false;
  bool own_output = false;

  std::int64_t row() const { return std::int64_t{dim} * (layers.empty() ? 1 : std::ssize(layers)); }
};

struct HiddenNames {
  std::string token_norm = {};
  std::string hidden_norm = {};
  std::string joint = {};
};

// A multi-token prediction layer of a network. Names of its tensors have no prefix.
struct Predictor {
  std::vector<std::string> prefixes = {};  // possible prefixes; empty: that of the network
  std::size_t like = 0;                    // index of the layer with the same spec
  std::string layer;
  HiddenNames names;
  std::string final_norm = {};  // "": no final norm
  bool hidden_first = false;    // see HiddenInput, also for the next field
  bool normed_output = false;
};

}  // namespace octavo
