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

// What makes rows of a language model's input of an encoder's: squares of merge x merge neighbours of an
// image, or some rows of a sound, become one row, side by side ("pixel shuffle") or by their mean.
struct Projector {
  bool mean = false;
  bool merged = false;  // a product [dim, dim * joined] comes first; its columns are stored by channel
  NormSpec norm = {};   // of these rows
  // Of a hidden layer between two matrices; nothing: there is but one.
  std::optional<Activation> activation = {};
  int hidden = 0;  // its width
  bool bias = false;
  bool transposed = false;  // stored [inputs, outputs], under their names alone
};

// What an encoder of images (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021) has in place of
// embeddings: a grid of square patches. Those of images of one size have learned positions; of any size,
// rotary ones of two axes, height and width, and maybe learned ones beside them.
struct ImageInput {
  int image_size = 0;  // pixels of a square image's side; 0: images have any size
  int patch_size = 0;
  int merge = 1;
  int frames = 0;        // of videos, that a patch has, all of them an image's; 0: it is for images alone
  float time_steps = 0;  // of the axis of time, that a second of a video has; 0: a patch is one
  bool bias = true;      // of what makes vectors of patches
  bool channels_last = false;  // its columns are stored by row, column, channel, and have no axes
  // There is a learned row before those of the patches, with a position of its own: layers see it, the
  // projector does not.
  bool class_token = false;
  int window = 0;  // tokens of a side of the windows of local layers
  // Of images of any size: the learned positions are a grid of so many a side, which is stretched over an
  // image's patches (position_grid.h); 0: there are none.
  int position_side = 0;
  // Or there are so many for columns, then as many for rows, and a patch has the sum of two; 0: there are
  // none.
  int axis_positions = 0;
  int out_dim = 0;          // of a token
  bool row_breaks = false;  // between the rows of an image's tokens the text has tokens of its own
  // An image is cut into squares of image_size, with the whole of it before them. Their tokens make one grid,
  // and behind each of its rows stands a learned one (MediaPart::Tiles; Liu et al., "LLaVA-NeXT", 2024).
  bool tiled = false;
  // The whole image comes behind the squares and is made of them. Learned rows stand behind each of its rows,
  // too, and another one between both: the projector makes rows of the text of them. Patches that show
  // nothing of the image are not seen by others (MediaPart::Tiles; Phi-4-multimodal: Abouelenin et al.,
  // 2025).
  bool whole_last = false;
  Projector projector = {};
  // Behind each of these layers another projector makes rows of the patches. The language model adds the
  // first ones to its residual behind its first layer, and so on (Meng et al., "DeepStack", 2024).
  std::vector<int> deep_layers = {};
  Projector deep_projector = {};
  // A channel's value v, 0 to 255, counts as (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};

  bool placed() const { return position_side > 0 || axis_positions > 0; }  // has both kinds of positions
  int unit() const { return patch_size * merge; }                          // pixels of a token's side
  int square() const { return merge * merge; }                             // patches of a token
  int patch_values() const { return 3 * std::max(1, frames) * patch_size * patch_size; }
  int side() const { return image_size / unit(); }  // tokens of a square image's side
  // What the language model gets for a token: its row, and those of the deep layers.
  std::int64_t row_dim() const { return std::int64_t{out_dim} * (1 + std::ssize(deep_layers)); }
};

// What an encoder of sound (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision",
// 2022) has in place of embeddings: a log-mel spectrogram of fixed length, behind two convolutions three
// frames wide, the second of which takes every other frame.
struct SoundInput {
  int mels = 0;
  int rows = 0;  // that the encoder makes
  // Of sound in prompts: so many of them become one row of the text, of out_dim. 0: layers of the text look
  // at the encoder's rows.
  int joined = 0;
  bool whole =
      false;  // with joined: it sees windows of full length alone, the silence behind a sound as well
  int out_dim = 0;
  Projector projector = {};

  int frames() const { return 2 * rows; }
  int tokens() const { return rows / joined; }  // of a sound as long as the encoder takes it
};

constexpr int kSoundTaps = 3;  // frames that a convolution sees

// Of an encoder of prompts (Raffel et al., "Exploring the Limits of Transfer Learning", 2020): the language
// model's layers look at its rows, one for each token, and its own text begins with the same tokens whatever
// the prompt is.
struct SourceInput {
  int rows = 0;            // at most
  std::vector<int> begin;  // tokens
};

// What a network that proposes for another one reads beside the embedding of a token: a row that the other
// has made of the token before it (multi-token prediction: DeepSeek-V3, 2024; EAGLE: Li et al., ICML 2024;
// EAGLE-3: Li et al., 2025).
struct HiddenInput {
  int dim = 0;    // of the other's residual
  int vocab = 0;  // of the tokens that are read
  // The row: the other's residual before each of these layers, side by side; empty: its residual behind the
  // last one, normed. For the second draft token and those behind it, a row of this network's own residual
  // takes its place.
  std::vector<int> layers = {};
  NormSpec token_norm = {};  // of the embedding
  NormSpec hidden_norm = {};
  // A product of both, one behind the other, is the residual. false: a product of the row is, and the first
  // layer's mixer sees embedding and row one behind the other, each with its norm.
  bool joined = true;
  bool hidden_first = false;     // joined: the row comes before the embedding
  bool joint_bias = false;       // of the product
  bool normed_residual = false;  // not joined: the residual has hidden_norm, too
  bool normed_output = false;    // rows of its own are behind its final norm
  // Else the other's matrices are used.
  bool own_embedding = false;
  bool own_output = false;

  std::int64_t row() const { return std::int64_t{dim} * (layers.empty() ? 1 : std::ssize(layers)); }
};

// A network's layer of multi-token prediction: how its tensors are called, without the prefix.
struct Predictor {
  std::vector<std::string> prefixes = {};  // empty: the network's
  std::size_t like = 0;                    // the layer of the network that it is like
  std::string layer;
  std::string token_norm, hidden_norm, joint;
  std::string final_norm = {};  // empty: there is none
  bool hidden_first = false;    // these two: HiddenInput
  bool normed_output = false;
};

}  // namespace octavo
