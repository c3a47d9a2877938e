#include "model/convert.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/thread_pool.h"
#include "model/load_matrix.h"
#include "model/model.h"
#include "model/parameters.h"
#include "weights/json.h"
#include "weights/pack.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// What the tensors that are to be quantised become, by name.
using Targets = std::map<std::string, Encoding, std::less<>>;

Result<Targets> targets_of(const Parameters& parameters, const ConvertOptions& options) {
  Targets targets;
  for (const LayerParameters& layer : parameters.layers)
    for (const LinearParameter* linear : {&layer.qkv, &layer.out, &layer.up, &layer.down})
      for (const Slot& slot : linear->weight.parts) {
        if (linear->weight.transposed)
          return failure(ErrorCode::unsupported, "tensor {} is stored transposed", slot.name);
        targets[slot.name] = options.quantization;
      }
  if (!options.keep_embedding)
    for (const MatrixParameter* table : {&parameters.embedding, &parameters.lm_head})
      for (const Slot& slot : table->parts) targets[slot.name] = Encoding::int8;
  return targets;
}

PackedLayout layout_of(const ConvertOptions& options) {
  return options.quantization == Encoding::int8 ? PackedLayout::int_quantized : PackedLayout::pack_quantized;
}

// "layers.0.mlp.up_proj" of "layers.0.mlp.up_proj.weight".
std::string module_of(const StoredTensor& tensor) {
  constexpr std::string_view kEnd = ".weight";
  return tensor.name.substr(0, tensor.name.size() - kEnd.size());
}

Result<> check_target(const StoredTensor& tensor, Encoding encoding) {
  if (!tensor.plain())
    return invalid("quantization", "tensor {} is {}: it cannot be quantised to {} again", tensor.name,
                   tensor.format, name(encoding));
  // One size of groups holds for all matrices of the layers.
  const std::int64_t multiple = encoding == Encoding::int4 ? kInt4Group : kColumnsMultiple;
  if (tensor.shape[1] % multiple != 0)
    return invalid("quantization", "{} needs a multiple of {} columns, tensor {} has {}", name(encoding),
                   multiple, tensor.name, tensor.shape[1]);
  return {};
}

// `format`: of the plain matrices as they would be loaded.
Result<> write_tensors(const Checkpoint& checkpoint, const Targets& targets, DType format,
                       const std::string& path, const ConvertOptions& options) {
  const auto entries_of = [&](const StoredTensor& tensor, Encoding encoding) {
    return packed_entries(module_of(tensor), tensor.shape[0], tensor.shape[1], encoding, layout_of(options));
  };
  std::vector<TensorEntry> entries;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    const auto target = targets.find(tensor.name);
    if (target == targets.end()) {
      entries.push_back({tensor.name, tensor.format, tensor.shape, tensor.bytes.size()});
      continue;
    }
    TRY_VOID(check_target(tensor, target->second));
    for (TensorEntry& entry : entries_of(tensor, target->second)) entries.push_back(std::move(entry));
  }
  ThreadPool pool(options.threads > 0 ? options.threads : usable_processors());
  TRY(SafetensorsWriter writer, SafetensorsWriter::create(path, std::move(entries)));
  std::size_t done = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    const auto target = targets.find(tensor.name);
    if (target == targets.end()) {
      TRY_VOID(writer.write(tensor.name, tensor.bytes));
    } else {
      TRY_VOID(check_finite(tensor, pool));
      std::vector<std::byte> memory;
      const View plain = view_of(in_format(tensor, format, memory, pool));
      TRY(const QuantizedMatrix matrix, quantize(plain, target->second, pool));
      const auto written = entries_of(tensor, target->second);
      const auto bytes = packed_bytes(matrix, layout_of(options));
      for (std::size_t i = 0; i < bytes.size(); ++i) TRY_VOID(writer.write(written[i].name, bytes[i]));
    }
    checkpoint.release(tensor);
    done += tensor.bytes.size();
    if (options.progress) options.progress(done, checkpoint.bytes());
  }
  return writer.finish();
}

json::object weights_of(Encoding encoding) {
  if (encoding == Encoding::int8)
    return {
        {"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "channel"}, {"dynamic", false}};
  return {{"num_bits", 4},
          {"type", "int"},
          {"symmetric", false},
          {"strategy", "group"},
          {"group_size", kInt4Group},
          {"dynamic", false}};
}

// quantization_config as compressed-tensors reads it.
json::object description(const Parameters& parameters, const ConvertOptions& options) {
  json::object layers{{"targets", json::array{"Linear"}}, {"weights", weights_of(options.quantization)}};
  if (options.quantization == Encoding::int8)
    layers["input_activations"] = {
        {"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "token"}, {"dynamic", true}};
  json::object groups{{"group_0", std::move(layers)}};
  json::array ignored;
  if (options.keep_embedding || parameters.lm_head.parts.empty()) ignored.push_back("lm_head");
  if (!options.keep_embedding) {
    json::array tables{"Embedding"};
    if (!parameters.lm_head.parts.empty()) tables.push_back("re:.*lm_head");
    groups["group_1"] = {{"targets", std::move(tables)}, {"weights", weights_of(Encoding::int8)}};
  }
  return {{"quant_method", "compressed-tensors"},
          {"quantization_status", "compressed"},
          {"format", layout_of(options) == PackedLayout::int_quantized ? "int-quantized" : "pack-quantized"},
          {"config_groups", std::move(groups)},
          {"ignore", std::move(ignored)}};
}

bool holds_weights(const std::string& file) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".safetensors", ".safetensors.index.json", ".bin",
                                              ".bin.index.json", ".pt", ".pth", ".gguf"},
      [&](std::string_view end) { return file.ends_with(end); });
}

Result<> copy_others(const std::string& from, const std::string& to) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(from, ec)) {
    const std::string file = entry.path().filename();
    if (!entry.is_regular_file(ec) || holds_weights(file) || file == "config.json") continue;
    fs::copy_file(entry.path(), fs::path(to) / file, ec);
    if (ec) break;
  }
  if (ec) return failure(ErrorCode::io, "copying {} to {}: {}", from, to, ec.message());
  return {};
}

Result<> make_empty_directory(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  const bool empty = !ec && fs::is_empty(path, ec);
  if (ec) return failure(ErrorCode::io, "{}: {}", path, ec.message());
  if (!empty) return invalid("out", "{} is not empty", path);
  return {};
}

}  // namespace

Result<> convert(const std::string& from, const std::string& to, const ConvertOptions& options) {
  TRY(json::value config, read_json_file(from + "/config.json"));
  TRY(const ModelSpec spec, load_spec(from));
  TRY(const Checkpoint checkpoint, open_checkpoint(from));
  TRY(const Parameters parameters, checked_parameters(spec, checkpoint));
  TRY(const Targets targets, targets_of(parameters, options));
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (tensor.packed) return invalid("in", "tensor {} is quantised already", tensor.name);
  TRY_VOID(make_empty_directory(to));
  const std::string file = to + "/model.safetensors";
  if (auto written = write_tensors(checkpoint, targets, plain_format(parameters, checkpoint), file, options);
      !written) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return written;
  }
  TRY_VOID(copy_others(from, to));
  config.as_object()["quantization_config"] = description(parameters, options);
  std::ofstream out(to + "/config.json");
  out << json::serialize(config) << '\n';
  if (!out.flush()) return failure(ErrorCode::io, "{}/config.json cannot be written", to);
  return {};
}

}  // namespace octavo
