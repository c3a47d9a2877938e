#include "engine/media/image_encoder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/inputs/media.h"
#include "model/position_grid.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

constexpr int kImageBlockSize = 16;

int blocks_of(int patches) { return (patches + kImageBlockSize - 1) / kImageBlockSize; }

// Maps each of the `seen` positions along an axis to one of the `all` learned positions, proportionally.
// Computes in f32, like transformers.
std::vector<int> stretched_indices(int seen, int all) {
  const float step = 1.0F / static_cast<float>(seen);
  const double position = 1.0 / all;
  std::vector<int> indices(static_cast<std::size_t>(all), 0);
  for (int i = 0; i < seen; ++i) {
    const float at = std::min(static_cast<float>(i) * step, 1.0F - 1e-6F);
    int& index = indices[static_cast<std::size_t>(i)];
    while (index + 1 < all && static_cast<float>(position + index * position) <= at) ++index;
  }
  return indices;
}

}  // namespace

// Each sequence gets separate blocks.
void ImageEncoder::Sequences::set(const std::vector<std::int32_t>& sizes) {
  *this = Sequences();
  starts = {0};
  table_stride = blocks_of(std::ranges::max(sizes));
  for (const std::int32_t size : sizes) {
    starts.push_back(starts.back() + size);
    lengths.push_back(size);
    for (std::int32_t i = 0; i < size; ++i) slots.push_back(std::int64_t{blocks} * kImageBlockSize + i);
    for (std::int64_t i = 0; i < table_stride; ++i)
      table.push_back(i < blocks_of(size) ? blocks + static_cast<std::int32_t>(i) : blocks);
    blocks += blocks_of(size);
  }
}

// Returns the part of the sequences that contains `rows`. If there are several sequences, `rows` must
// consist of whole sequences.
ImageEncoder::Sequences ImageEncoder::Sequences::part(StepRows rows) const {
  const auto count = static_cast<std::int32_t>(rows.count);
  Sequences part;
  part.table_stride = table_stride;
  if (lengths.size() == 1) {
    part.starts = {0, count};
    part.lengths = lengths;
    part.table = table;
    return part;
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (starts[i] < rows.first || starts[i] >= rows.first + rows.count) continue;
    part.starts.push_back(starts[i] - static_cast<std::int32_t>(rows.first));
    part.lengths.push_back(lengths[i]);
    const auto entries = table.begin() + static_cast<std::ptrdiff_t>(i) * table_stride;
    part.table.insert(part.table.end(), entries, entries + table_stride);
  }
  part.starts.push_back(count);
  return part;
}

Result<std::unique_ptr<ImageEncoder>> ImageEncoder::create(const Model& tower, Backend& backend) {
  std::unique_ptr<ImageEncoder> encoder(new ImageEncoder(tower, backend));
  if (encoder->input_.has_positions()) TRY_VOID(encoder->read_positions());
  const int side = encoder->input_.side();
  if (side > 0) TRY_VOID(encoder->prepare(side, side));
  return encoder;
}

ImageEncoder::ImageEncoder(const Model& tower, Backend& backend)
    : tower_(tower),
      input_(*tower.spec.inputs.image),
      backend_(backend),
      layout_(cache_layout(tower.spec,
                           {.block_size = kImageBlockSize, .dtype = tower.activation, .one_plane = true})) {
  for (const LayerGroup& group : layout_.groups)
    CHECK(!group.causal && (group.local || group.window == 0), "{}: rows that see a part of the image",
          tower.spec.architecture);
  const DType act = tower.activation;
  numbers_.resize(3 * 256 * size_of(act));
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t value = 0; value < 256; ++value)
      put_number(numbers_.data(), act, channel * 256 + value,
                 input_.pixels.of(static_cast<float>(value), channel));
}

Result<> ImageEncoder::read_positions() {
  Device& device = *backend_.device;
  Stream& stream = *backend_.stream;
  const Weight& table = tower_.network.input<PatchInput>()->positions();
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(table.rows()));
  std::iota(numbers.begin(), numbers.end(), 0);
  position_table_.resize(numbers.size() * static_cast<std::size_t>(table.cols()));
  TRY(const Buffer ids, device.allocate(numbers.size() * sizeof(std::int32_t)));
  TRY(const Buffer rows, device.allocate(position_table_.size() * sizeof(float)));
  const View every = ids.view(DType::i32, {table.rows()});
  const View values = rows.view(DType::f32, {table.rows(), table.cols()});
  device.upload(stream, every, numbers.data());
  backend_.ops.embed(stream, {.ids = every, .table = table, .out = values});
  device.download(stream, position_table_.data(), values);
  stream.synchronize();
  return {};
}

std::int64_t ImageEncoder::later_bytes(int tokens_max) const {
  const std::int64_t most = std::int64_t{tokens_max} * input_.square();
  const std::int64_t rows =
      std::max<std::int64_t>(0, std::min<std::int64_t>(tower_.spec.max_positions, most) - room_.rows);
  const auto element = static_cast<std::int64_t>(size_of(tower_.activation));
  return workspace_bytes(tower_.spec, tower_.activation, {.max_tokens = static_cast<int>(rows)}) +
         rows * (input_.patch_values() * element + (input_.has_positions() ? 4 * tower_.spec.dim : 0)) +
         blocks_of(static_cast<int>(rows)) * layout_.block_bytes(backend_.ops);
}

// Sorts the patches by window. Returns the number of patches in each window.
std::vector<std::int32_t> ImageEncoder::order_patches() {
  const int merge = input_.merge;
  const int window = input_.window > 0 ? input_.window : std::max(grid_.rows, grid_.columns);
  std::vector<std::int32_t> sizes;
  grid_.patch_rows.clear();
  grid_.patch_columns.clear();
  grid_.token_slots.resize(static_cast<std::size_t>(grid_.rows * grid_.columns));
  std::int32_t index = 0;
  const auto add_token = [&](int row, int column) {
    grid_.token_slots[static_cast<std::size_t>(row * grid_.columns + column)] = index++;
    for (int y = row * merge; y < (row + 1) * merge; ++y)
      for (int x = column * merge; x < (column + 1) * merge; ++x) {
        grid_.patch_rows.push_back(y);
        grid_.patch_columns.push_back(x);
      }
  };
  for (int top = 0; top < grid_.rows; top += window)
    for (int left = 0; left < grid_.columns; left += window) {
      const int bottom = std::min(top + window, grid_.rows), right = std::min(left + window, grid_.columns);
      for (int row = top; row < bottom; ++row)
        for (int column = left; column < right; ++column) add_token(row, column);
      sizes.push_back((bottom - top) * (right - left) * input_.square());
    }
  return sizes;
}

Result<> ImageEncoder::prepare(int rows, int columns) {
  if (rows == grid_.rows && columns == grid_.columns) return {};
  backend_.stream->synchronize();  // waits, because the device may still read the data of the last image
  grid_.rows = rows;
  grid_.columns = columns;
  const std::vector<std::int32_t> sizes = order_patches();
  const std::int32_t count = static_cast<std::int32_t>(grid_.patch_rows.size()) + class_tokens();
  see(rows * input_.merge, columns * input_.merge);
  windows_.set(sizes);
  const auto reserved = reserve({.rows = count,
                                 .windows = static_cast<int>(sizes.size()),
                                 .blocks = std::max(whole_.blocks, windows_.blocks)});
  if (!reserved) grid_.rows = grid_.columns = 0;
  TRY_VOID(reserved);
  upload_grid();
  return {};
}

// Sets the visible part of the image. Invisible patches get the last keys, which no query reads.
void ImageEncoder::see(int rows, int columns) {
  const int extra = class_tokens();
  whole_.set({static_cast<std::int32_t>(grid_.patch_rows.size()) + extra});
  grid_.seen_rows = rows;
  grid_.seen_columns = columns;
  std::int32_t& seen = whole_.lengths[0] = rows * columns + extra;
  std::int64_t next = extra, hidden = seen;
  for (std::size_t i = 0; i < grid_.patch_rows.size(); ++i)
    whole_.slots[i + static_cast<std::size_t>(extra)] =
        grid_.patch_rows[i] < rows && grid_.patch_columns[i] < columns ? next++ : hidden++;
}

Result<> ImageEncoder::reserve(const Room& needed) {
  if (room_.holds(needed)) return {};
  const Room room{.rows = std::max(room_.rows, needed.rows),
                  .windows = std::max(room_.windows, needed.windows),
                  .blocks = std::max(room_.blocks, needed.blocks)};
  room_ = {};
  Device& device = *backend_.device;
  const auto n = static_cast<std::size_t>(room.rows);
  const auto tokens = n / static_cast<std::size_t>(input_.square());
  TRY(Decoder decoder,
      Decoder::make(tower_, layout_, backend_, {.max_tokens = room.rows, .max_logit_rows = 1}));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  TRY(cache_, KvMemory::allocate(layout_, backend_, room.blocks, 0));
  host_patches_.resize(n * static_cast<std::size_t>(input_.patch_values()) * size_of(tower_.activation));
  TRY(memory_.patches, device.allocate(host_patches_.size()));
  TRY(memory_.positions, device.allocate(n * sizeof(std::int32_t)));
  TRY(memory_.axes, device.allocate(3 * n * sizeof(std::int32_t)));
  TRY(memory_.starts, device.allocate((tokens + 1) * sizeof(std::int32_t)));
  plans_.clear();
  slots_.clear();
  for (const LayerGroup& group : layout_.groups) {
    TRY(slots_.emplace_back(), device.allocate(n * sizeof(std::int64_t)));
    TRY(plans_.emplace_back(),
        backend_.ops.make_attention_plan(device, {.max_tokens = room.rows,
                                                  .max_sequences = group.local ? room.windows : 1,
                                                  .max_length = room.rows,
                                                  .q_heads = group.q_heads,
                                                  .kv = group.kv,
                                                  .window = group.window,
                                                  .causal = group.causal}));
  }
  if (input_.has_positions()) {
    TRY(memory_.position_embeddings,
        device.allocate(n * static_cast<std::size_t>(tower_.spec.dim) * sizeof(float)));
  }
  if (input_.window > 0) {
    TRY(memory_.token_slots, device.allocate(tokens * sizeof(std::int32_t)));
    TRY(memory_.projected, device.allocate(tokens * static_cast<std::size_t>(row_bytes())));
  }
  room_ = room;
  return {};
}

void ImageEncoder::upload_grid() {
  const int across = grid_.columns * input_.merge, merged = input_.square();
  // RoPE does not rotate class tokens; their position is (0, 0), and that of the first patch is (1, 1).
  std::vector<std::int32_t> axes;
  for (const std::vector<std::int32_t>* axis : {&grid_.patch_rows, &grid_.patch_columns}) {
    axes.insert(axes.end(), static_cast<std::size_t>(class_tokens()), 0);
    for (const std::int32_t index : *axis) axes.push_back(index + (class_tokens() > 0 ? 1 : 0));
  }
  axes.resize(axes.size() / 2 * 3);  // the third axis is the time, which is 0
  std::vector<std::int32_t> positions(static_cast<std::size_t>(class_tokens())), starts;
  std::iota(positions.begin(), positions.end(), 0);
  const auto indices = [&](int seen, int all) {
    if (input_.hides_padding) return stretched_indices(seen, all);
    std::vector<int> as_they_are(static_cast<std::size_t>(all));
    std::iota(as_they_are.begin(), as_they_are.end(), 0);
    return as_they_are;
  };
  const std::vector<int> down_indices = indices(grid_.seen_rows, grid_.rows * input_.merge),
                         across_indices = indices(grid_.seen_columns, across);
  for (std::size_t i = 0; i < grid_.patch_rows.size(); ++i) {
    const int row = grid_.patch_rows[i], column = grid_.patch_columns[i];
    const bool seen = row < grid_.seen_rows && column < grid_.seen_columns;
    positions.push_back(seen ? class_tokens() + down_indices[static_cast<std::size_t>(row)] * across +
                                   across_indices[static_cast<std::size_t>(column)]
                             : 0);
  }
  for (int token = 0; token <= grid_.rows * grid_.columns; ++token) starts.push_back(token * merged);
  Device& device = *backend_.device;
  Stream& stream = *backend_.stream;
  const auto upload = [&](const Buffer& to, DType type, const auto& values) {
    device.upload(stream, to.view(type, {std::ssize(values)}), values.data());
  };
  upload(memory_.positions, DType::i32, positions);
  upload(memory_.axes, DType::i32, axes);
  upload(memory_.starts, DType::i32, starts);
  for (std::size_t g = 0; g < slots_.size(); ++g)
    upload(slots_[g], DType::i64, sequences_of(layout_.groups[g]).slots);
  if (input_.window > 0) upload(memory_.token_slots, DType::i32, grid_.token_slots);
  std::vector<float> position_embeddings;
  if (input_.has_positions()) {
    const int down = grid_.rows * input_.merge;
    position_embeddings = input_.grid.side > 0
                              ? stretched_positions(position_table_, input_.grid.side, tower_.spec.dim, down,
                                                    across, input_.grid.stretch)
                              : added_positions(position_table_, tower_.spec.dim, down, across);
    // class tokens have no positions
    position_embeddings.insert(position_embeddings.begin(),
                               static_cast<std::size_t>(class_tokens() * tower_.spec.dim), 0.0F);
    upload(memory_.position_embeddings, DType::f32, position_embeddings);
  }
  stream.synchronize();
}

// Writes patches in the order of the convolution's weights: channel, frame, row, column. If frames are
// missing, repeats the last one.
void ImageEncoder::fill_patches(const Square& image, int frames) {
  const auto patch = static_cast<std::size_t>(input_.patch_size);
  const std::size_t width = static_cast<std::size_t>(grid_.columns * input_.unit());
  const std::size_t picture = image.bytes.size() / static_cast<std::size_t>(frames);
  const std::size_t bytes = size_of(tower_.activation), frame_bytes = patch * patch * bytes;
  std::byte* out =
      std::fill_n(host_patches_.data(),
                  static_cast<std::size_t>(class_tokens() * input_.patch_values()) * bytes, std::byte{0});
  for (std::size_t i = 0; i < grid_.patch_rows.size(); ++i) {
    const std::size_t top = static_cast<std::size_t>(grid_.patch_rows[i]) * patch;
    const std::size_t left = static_cast<std::size_t>(grid_.patch_columns[i]) * patch;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t frame = 0; frame < static_cast<std::size_t>(frames); ++frame)
        for (std::size_t y = top; y < top + patch; ++y)
          for (std::size_t x = left; x < left + patch; ++x, out += bytes) {
            const std::size_t at = frame * picture + (y * width + x) * 3 + channel;
            if (image.numbers.empty())
              std::memcpy(
                  out, numbers_.data() + (channel * 256 + static_cast<std::uint8_t>(image.bytes[at])) * bytes,
                  bytes);
            else
              put_number(out, tower_.activation, 0, input_.pixels.of(image.numbers[at], channel));
          }
      for (int frame = frames; frame < input_.frames; ++frame, out += frame_bytes)
        std::memcpy(out, out - frame_bytes, frame_bytes);
    }
  }
}

Result<> ImageEncoder::begin(const MediaPart& image) {
  const std::string& pixels = image.bytes;
  const int unit = input_.unit(), across = image.columns > 0 ? image.columns : input_.side();
  const auto row_of_tokens = static_cast<std::size_t>(3 * unit * unit * across);
  const int frames = std::max(1, image.frames);
  const std::size_t picture = pixels.size() / static_cast<std::size_t>(frames);
  CHECK(across > 0 && !pixels.empty() && pixels.size() % row_of_tokens == 0 &&
            frames <= std::max(1, input_.frames),
        "{} bytes of pixels in {} frames", pixels.size(), frames);
  TRY_VOID(prepare(static_cast<int>(picture / row_of_tokens), across));
  const auto tokens = std::ssize(grid_.token_slots);
  TRY(encoded_, backend_.device->allocate(static_cast<std::size_t>(tokens * row_bytes())));
  start({.bytes = pixels}, frames);
  return {};
}

void ImageEncoder::begin_square(const Square& square, Buffer encoded) {
  encoded_ = std::move(encoded);
  const int side = input_.side() * input_.merge;
  const int rows = square.seen_rows > 0 ? square.seen_rows : side,
            columns = square.seen_columns > 0 ? square.seen_columns : side;
  if (rows != grid_.seen_rows || columns != grid_.seen_columns) {
    backend_.stream->synchronize();
    see(rows, columns);
    upload_grid();
  }
  start(square, 1);
}

Result<std::vector<float>> ImageEncoder::projected(std::span<const float> rows) {
  const DType act = tower_.activation;
  const std::int64_t columns = input_.projector_columns(tower_.spec.dim), n = std::ssize(rows) / columns;
  std::vector<std::byte> numbers(rows.size() * size_of(act));
  for (std::size_t i = 0; i < rows.size(); ++i) put_number(numbers.data(), act, i, rows[i]);
  std::vector<float> out(static_cast<std::size_t>(n * input_.out_dim));
  Device& device = *backend_.device;
  Stream& stream = *backend_.stream;
  TRY(const Buffer x, device.allocate(numbers.size()));
  TRY(const Buffer y, device.allocate(out.size() * sizeof(float)));
  const View from = x.view(act, {n, columns}), to = y.view(DType::f32, {n, input_.out_dim});
  device.upload(stream, from, numbers.data());
  decoder_->project_rows(from, to);
  device.download(stream, out.data(), to);
  stream.synchronize();
  return out;
}

void ImageEncoder::start(const Square& picture, int frames) {
  const auto patches = std::ssize(grid_.patch_rows), n = patches + class_tokens();
  Stream& stream = *backend_.stream;
  stream.synchronize();  // waits, because the device may still read the patches of the last image
  fill_patches(picture, frames);
  const View input = memory_.patches.view(tower_.activation, {n, input_.patch_values()});
  backend_.device->upload(stream, input, host_patches_.data());
  groups_.clear();
  for (std::size_t g = 0; g < plans_.size(); ++g)
    groups_.push_back({plans_[g].get(), slots_[g].view(DType::i64, {n})});
  batch_ = {.positions = memory_.positions.view(DType::i32, {n}),
            .axes = memory_.axes.view(DType::i32, {3, n}),
            .groups = groups_,
            .patches = input};
  if (input_.has_positions())
    batch_.position_embeddings = memory_.position_embeddings.view(DType::f32, {n, tower_.spec.dim});
  if (const std::int64_t deep = input_.row_dim() - input_.out_dim; deep > 0)
    batch_.deep = projected().columns(input_.out_dim, deep);
  decoder_->begin(batch_);
  done_ = {};
}

// Returns the output of the projector in the order of the patches.
View ImageEncoder::projected() const {
  return input_.window > 0
             ? memory_.projected.view(DType::f32, {std::ssize(grid_.token_slots), input_.row_dim()})
             : rows_of(encoded_);
}

std::optional<Buffer> ImageEncoder::advance(int rows) {
  const std::int64_t n = batch_.positions.size(0);
  const std::size_t layers = cache_.layers().size();
  const bool inside = done_.stored || done_.rows > 0;
  if (n > rows || inside) {
    if (done_.layers < layers)
      advance_layer(rows);
    else
      project(rows);
  } else {
    for (std::size_t group = 0; group < plans_.size(); ++group)
      plan(group, sequences_of(layout_.groups[group]));
    const std::size_t end = std::min(layers, done_.layers + static_cast<std::size_t>(rows / n));
    decoder_->run_layers(batch_, cache_.layers(), done_.layers, end);
    done_.layers = end;
    if (end == layers) project(static_cast<int>(n));
  }
  if (done_.tokens < std::ssize(grid_.token_slots)) return std::nullopt;
  return std::move(encoded_);
}

// Runs a part of a layer. If the image is one sequence, the keys and values of all rows must be stored
// before the first output is computed.
void ImageEncoder::advance_layer(int rows) {
  const std::int64_t n = batch_.positions.size(0);
  const auto index = static_cast<std::size_t>(layout_.layers[done_.layers].group);
  const LayerGroup& group = layout_.groups[index];
  const std::span<const KvLayer> cache = cache_.layers();
  const StepRows part{done_.rows,
                      group.local ? windows_from(done_.rows, rows) : squares_from(done_.rows, rows)};
  done_.rows += part.count;
  if (!group.local && !done_.stored) {
    decoder_->store_rows(batch_, cache, done_.layers, part);
    if (done_.rows < n) return;
    done_.stored = true;
    done_.rows = 0;
    return;
  }
  plan(index, sequences_of(group).part(part));
  decoder_->run_rows(batch_, cache, done_.layers, part);
  if (done_.rows == n) done_ = {.layers = done_.layers + 1};
}

// Returns the number of rows, from `row` on, that one call computes. A call computes complete squares (a
// square has the patches of one token): at most `rows` rows, but at least one square.
std::int64_t ImageEncoder::squares_from(std::int64_t row, int rows) const {
  const std::int64_t square = input_.square(), extra = row == 0 ? class_tokens() : 0;
  return std::min(batch_.positions.size(0) - row, extra + std::max<std::int64_t>(1, rows / square) * square);
}

// The same as squares_from(), but a call computes complete windows instead of complete squares.
std::int64_t ImageEncoder::windows_from(std::int64_t row, int rows) const {
  const auto first = std::ranges::lower_bound(windows_.starts, row);
  const auto end = std::upper_bound(first + 2, windows_.starts.end(), row + rows);
  return *(end - 1) - row;
}

void ImageEncoder::plan(std::size_t group, const Sequences& sequences) {
  backend_.ops.plan_attention(*backend_.stream,
                              {.query_starts = sequences.starts,
                               .lengths = sequences.lengths,
                               .block_tables = sequences.table,
                               .table_stride = sequences.table_stride,
                               .recorded = false},
                              *plans_[group]);
}

void ImageEncoder::project(int rows) {
  const auto tokens = std::ssize(grid_.token_slots);
  const std::int64_t count =
      std::min(tokens - done_.tokens, std::max<std::int64_t>(1, rows / input_.square()));
  decoder_->project(done_.tokens, projected().columns(0, input_.out_dim).rows(done_.tokens, count),
                    memory_.starts.view(DType::i32, {count + 1}));
  done_.tokens += count;
  if (done_.tokens < tokens || input_.window == 0) return;
  backend_.ops.gather_rows(
      *backend_.stream,
      {.x = projected(), .rows = memory_.token_slots.view(DType::i32, {tokens}), .out = rows_of(encoded_)});
}

}  // namespace octavo
