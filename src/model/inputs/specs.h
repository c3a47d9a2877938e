// Specs of inputs: images, audio, prompts of encoder-decoder models, and rows of a target model.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kinds.h"
#include "kernels/operators/grams.h"
#include "model/norm_spec.h"

namespace octavo {

constexpr int kMarkRows = 4;  // Projector::words

// Converts an encoder's rows to input rows of a language model. Several rows become one: merge x merge
// neighbouring patches of an image, or consecutive rows of audio. They are concatenated ("pixel shuffle") or
// averaged.
struct Projector {
  bool mean = false;
  bool merged = false;  // a matrix [dim, dim * joined] is applied first; its columns are ordered by channel
  // The matrix of `merged` is a convolution [convolved, dim, merge, merge] with a bias. 0: it is not.
  int convolved = 0;
  NormSpec patch_norm = {};  // norm of each patch, after the encoder's last norm
  NormSpec norm = {};        // norm of the joined rows
  // Width between two matrices that each patch passes before patches are joined. Their output has the width
  // of the projector's output, and `activation` is between them. 0: there are no such matrices.
  int patch_hidden = 0;
  // Activation between two matrices. nullopt: there is only one matrix.
  std::optional<Activation> activation = {};
  int hidden = 0;  // width between the first two matrices
  int middle = 0;  // width between the second and the third matrix; 0: there are at most two
  bool activated_middle = false;  // the activation also follows the second matrix
  // The first matrix computes `hidden` values, then a gate for each. The activation applies to the gates.
  bool gated = false;
  // Norm between the first matrix and the activation. Then a gated MLP with this number of hidden units is
  // the second matrix: the names are first, gate, up and down (GLM-4.1V: Hong et al., 2025). 0: no MLP.
  NormSpec hidden_norm = {};
  int mlp_hidden = 0;
  // The first matrix computes scores of `hidden` words, which hidden_norm normalises. Their softmax mixes the
  // rows of a table, one per word (Ovis: Lu et al., 2024). kMarkRows more rows of the table are not words:
  // the first two of them come before and after the rows of an image.
  bool words = false;
  bool bias = false;
  bool transposed = false;  // matrices are stored as [inputs, outputs], and their names have no ".weight"
};

// Decides how a grid of learned positions is stretched over an image's patches (position_grid.h).
enum class PositionStretch : std::uint8_t {
  corners,      // bilinear; the corners of the grid are the corner patches
  bilinear,     // bilinear; patches and positions are squares of the same area
  antialiased,  // bilinear; if the grid shrinks, a patch averages more positions
  bicubic,
  cropped,  // bilinear over a square with the image's longer side, of which the image is the upper left part
};

// Learned positions of a square grid, which is stretched over an image's patches.
struct PositionGrid {
  int side = 0;  // 0: no grid
  PositionStretch stretch = PositionStretch::corners;
  NormSpec patch_norm = {};  // norm of a patch before its position is added
  bool in_rows = false;      // the checkpoint stores the positions as [side, side, dim]
};

// Converts a channel value v in 0 .. 255 to (v * scale - mean) / std.
struct PixelScale {
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};

  float of(float value, std::size_t channel) const { return (value * scale - mean[channel]) / std[channel]; }
};

// How a checkpoint stores the patch embedding.
enum class PatchStorage : std::uint8_t {
  convolution,    // [dim, 3, patch_size, patch_size]
  matrix,         // the same as [dim, values of a patch]
  channels_last,  // [dim, values of a patch]; the values are ordered by row, column, channel
};

// Learned rows before the patches. Layers read them, but the projector does not.
struct ClassTokens {
  int count = 0;      // the rows have learned positions, except beside a PositionGrid
  bool last = false;  // the position of the only row is the last one in the checkpoint
};

// Input of an image encoder (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021): a grid of square
// patches. If all images have one size, positions are learned. Otherwise, positions are rotary with the axes
// height and width, and some encoders add learned positions.
struct ImageInput {
  int image_size = 0;  // side of a square image in pixels; 0: images may have any size
  int patch_size = 0;
  int merge = 1;
  int frames = 0;              // video frames in a patch; an image is repeated in all frames; 0: no videos
  float time_steps = 0;        // positions on the time axis per second of video; 0: one position per patch
  bool bias = true;            // the patch embedding has a bias
  PatchStorage storage = PatchStorage::convolution;
  ClassTokens classes = {};
  int window = 0;  // side of a local layer's windows, in tokens
  PositionGrid grid = {};  // only for images of any size
  // Used instead of the grid: the number of learned positions for columns, and also for rows. A patch has the
  // sum of its column's and its row's position.
  int axis_positions = 0;
  int out_dim = 0;          // width of a token's row for the language model
  bool row_breaks = false;  // the prompt has separator tokens between the rows of an image's tokens
  // Images are cut into squares of side image_size. The complete image, scaled down, comes first. The tokens
  // of the squares form one grid, and a learned token follows each row of the grid (MediaPart::Tiles; Liu et
  // al., "LLaVA-NeXT", 2024).
  bool tiled = false;
  // The complete image comes after the squares. A learned row follows each of its rows, and one more learned
  // row separates it from the squares; both pass through the projector (MediaPart::Tiles; Phi-4-multimodal:
  // Abouelenin et al., 2025).
  bool whole_last = false;
  bool hides_padding = false;  // with `whole_last`: patches do not see padding patches
  Projector projector = {};
  // After each of these layers, one more projector makes rows from the patches. The language model adds the
  // rows of the first of these projectors to its residual after its first layer, and so on (Meng et al.,
  // "DeepStack", 2024).
  std::vector<int> deep_layers = {};
  Projector deep_projector = {};
  PixelScale pixels = {};

  // Returns whether patches have learned positions in addition to rotary ones.
  bool has_positions() const { return grid.side > 0 || axis_positions > 0; }
  // Number of tokens, before and after those of the patches, that have learned rows.
  int marks() const { return projector.words ? 2 : 0; }
  int unit() const { return patch_size * merge; }  // side of a token in pixels
  int square() const { return merge * merge; }     // patches per token
  // Width of the projector's input, if the encoder has rows of width dim.
  std::int64_t projector_columns(std::int64_t dim) const { return projector.mean ? dim : dim * square(); }
  int patch_values() const { return 3 * std::max(1, frames) * patch_size * patch_size; }
  int side() const { return image_size / unit(); }  // side of a square image in tokens
  // Width of a token's input to the language model: its row, and the rows of the deep layers.
  std::int64_t row_dim() const { return std::int64_t{out_dim} * (1 + std::ssize(deep_layers)); }
};

// Input of an audio encoder (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision",
// 2022): a log-mel spectrogram of fixed length, after two convolutions of width three. The second one has
// stride two.
struct SoundInput {
  int mels = 0;
  int rows = 0;  // rows that the encoder computes
  // Number of encoder rows that become one input row of the language model, of width out_dim. 0: the language
  // model reads the encoder's rows by cross attention instead.
  int joined = 0;
  // with `joined`: the encoder processes only windows of full length, including the silence after the audio
  bool whole = false;
  bool trimmed = false;  // with `whole`: the language model does not get the rows of the silence
  int out_dim = 0;
  Projector projector = {};

  int frames() const { return 2 * rows; }
  int tokens() const { return rows / joined; }  // tokens of the longest audio
};

// Embeddings of the last tokens, which are added to a token's embedding (LongCat-Flash-Lite: Meituan, 2026).
// The rows of each table are multiplied by a matrix.
struct GramInput {
  std::vector<GramTable> tables;
  int dim = 0;      // width of a row
  int stop = -1;    // GramRowsArgs::stop
  float scale = 1;  // factor of the sum

  struct Names {
    std::string tables = "ngram_embeddings.embedders.{}";
    std::string matrices = "ngram_embeddings.post_projs.{}";
  };
};

constexpr int kSoundTaps = 3;  // width of the convolutions in frames

// Input of a prompt encoder (T5: Raffel et al., "Exploring the Limits of Transfer Learning", 2020). The
// language model has cross attention to the encoder's rows, one per token.
struct SourceInput {
  int rows = 0;            // maximum number of rows
  std::vector<int> begin;  // first tokens of every output
};

// Input of a drafter, in addition to the token's embedding: the row that the target computed for the previous
// token (multi-token prediction: DeepSeek-V3, 2024; EAGLE: Li et al., ICML 2024; EAGLE-3: Li et al., 2025).
struct HiddenInput {
  int dim = 0;    // width of the target's residual
  int vocab = 0;  // number of token ids that the drafter supports
  // The row is the concatenation of the target's residual before each of these layers. If the list is empty,
  // the row is the target's residual after the final norm. For all draft tokens except the first, the row is
  // the drafter's residual.
  std::vector<int> layers = {};
  NormSpec token_norm = {};
  NormSpec hidden_norm = {};
  // If true, the residual is a product of embedding and row, concatenated. If false, the residual is a
  // product of the row, and the first layer's mixer reads embedding and row, each after its norm,
  // concatenated.
  bool joined = true;
  bool hidden_first = false;  // used with `joined`: the row comes before the embedding in the concatenation
  bool joint_bias = false;    // used with `joined`: the product has a bias
  bool normed_residual = false;  // used without `joined`: hidden_norm also applies to the residual
  bool normed_output = false;    // the drafter's rows are taken after its final norm
  // If false, the drafter uses the target's matrix.
  bool own_embedding = false;
  bool own_output = false;

  std::int64_t row() const { return std::int64_t{dim} * (layers.empty() ? 1 : std::ssize(layers)); }
};

struct HiddenNames {
  std::string token_norm = {};
  std::string hidden_norm = {};
  std::string joint = {};
};

// A multi-token prediction (MTP) layer. Names of its tensors have no prefix.
struct Predictor {
  // prefixes that the checkpoint may use; empty: the network's prefix
  std::vector<std::string> prefixes = {};
  std::size_t like = 0;  // index of the layer with the same spec
  std::string layer;
  HiddenNames names;
  std::string final_norm = {};  // "": no final norm
  bool hidden_first = false;    // see HiddenInput::hidden_first
  bool normed_output = false;
};

}  // namespace octavo
