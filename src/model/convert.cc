#include "model/convert.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/thread_pool.h"
#include "model/inspect.h"
#include "model/load_matrix.h"
#include "model/model.h"
#include "weights/json.h"
#include "weights/pack.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// Encodings of the tensors that are quantised, by name.
using Targets = std::map<std::string, Encoding, std::less<>>;

Result<Targets> targets_of(Network& network, const ConvertOptions& options) {
  Targets targets;
  for (const MatrixParameter* matrix : network.parameters().matrices)
    for (const Slot& slot : matrix->parts) {
      const bool table = matrix->use == MatrixUse::table;
      if (!(matrix->use == MatrixUse::layer || (table && !options.keep_embedding))) continue;
      if (matrix->transposed)
        return failure(ErrorCode::unsupported, "tensor {} is stored transposed, which is not supported",
                       slot.name);
      if (matrix->slice >= 0)
        return failure(ErrorCode::unsupported, "tensor {} contains several experts, which is not supported",
                       slot.name);
      targets[slot.name] = table ? Encoding::int8 : options.quantization;
    }
  return targets;
}

PackedLayout layout_of(const ConvertOptions& options) {
  return options.quantization == Encoding::int8 ? PackedLayout::int_quantized : PackedLayout::pack_quantized;
}

// Converts "layers.0.mlp.up_proj.weight" to "layers.0.mlp.up_proj".
std::string module_of(const StoredTensor& tensor) {
  constexpr std::string_view kEnd = ".weight";
  return tensor.name.substr(0, tensor.name.size() - kEnd.size());
}

Result<> check_target(const StoredTensor& tensor, Encoding encoding) {
  if (!tensor.plain())
    return invalid("quantization",
                   "tensor {} is already quantised ({}), so it cannot be converted to {}: start from an "
                   "unquantised model",
                   tensor.name, tensor.format, name(encoding));
  if (tensor.shape[1] % kColumnsMultiple != 0)
    return invalid("quantization", "{} needs a multiple of {} columns, but tensor {} has {}", name(encoding),
                   kColumnsMultiple, tensor.name, tensor.shape[1]);
  return {};
}

// Writes the tensors and returns their size in bytes. `format` is the format of matrices that are not
// quantised.
Result<std::uint64_t> write_tensors(const Checkpoint& checkpoint, const Targets& targets, DType format,
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
  std::uint64_t bytes = 0;
  for (const TensorEntry& entry : entries) bytes += entry.bytes;
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
      const auto parts = packed_bytes(matrix, layout_of(options));
      for (std::size_t i = 0; i < parts.size(); ++i) TRY_VOID(writer.write(written[i].name, parts[i]));
    }
    checkpoint.release(tensor);
    done += tensor.bytes.size();
    if (options.progress) options.progress(done, checkpoint.bytes());
  }
  TRY_VOID(writer.finish());
  return bytes;
}

// Returns the `weights` object of compressed-tensors. `group` is the number of int4 columns that share a
// scale.
json::object weights_of(Encoding encoding, std::int64_t group) {
  if (encoding == Encoding::int8)
    return {
        {"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "channel"}, {"dynamic", false}};
  return {{"num_bits", 4},       {"type", "int"},       {"symmetric", false},
          {"strategy", "group"}, {"group_size", group}, {"dynamic", false}};
}

json::object description(Network& network, const Checkpoint& checkpoint, const Targets& targets,
                         const ConvertOptions& options) {
  // Modules by group size. The group with the most modules is written as the catch-all target "Linear". The
  // modules of other groups are listed by name.
  std::map<std::int64_t, json::array> modules;
  for (const auto& [tensor, encoding] : targets) {
    if (encoding != options.quantization) continue;
    const StoredTensor& stored = *checkpoint.find(tensor);
    const std::int64_t cols = stored.shape[1];
    modules[encoding == Encoding::int4 ? cols / groups_of(encoding, cols) : 0].emplace_back(
        module_of(stored));
  }
  const auto most =
      std::ranges::max_element(modules, {}, [](const auto& group) { return group.second.size(); });
  json::object groups;
  for (auto& [size, names] : modules) {
    json::object layers{{"targets", size == most->first ? json::array{"Linear"} : std::move(names)},
                        {"weights", weights_of(options.quantization, size)}};
    if (options.quantization == Encoding::int8)
      layers["input_activations"] = {
          {"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "token"}, {"dynamic", true}};
    groups[fmt::format("group_{}", groups.size())] = std::move(layers);
  }
  json::array ignored;
  if (options.keep_embedding || network.ends->lm_head.parts.empty()) ignored.push_back("lm_head");
  for (const MatrixParameter* matrix : network.parameters().matrices)
    if (matrix->use == MatrixUse::plain && !matrix->ranges_transposed)
      ignored.emplace_back(module_of(*checkpoint.find(matrix->parts[0].name)));
  if (!options.keep_embedding) {
    json::array tables{"Embedding"};
    if (!network.ends->lm_head.parts.empty()) tables.push_back("re:.*lm_head");
    groups[fmt::format("group_{}", groups.size())] = {{"targets", std::move(tables)},
                                                      {"weights", weights_of(Encoding::int8, 0)}};
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
  if (ec) return failure(ErrorCode::io, "cannot copy {} to {}: {}", from, to, ec.message());
  return {};
}

Result<> make_empty_directory(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  const bool empty = !ec && fs::is_empty(path, ec);
  if (ec) return failure(ErrorCode::io, "{}: {}", path, ec.message());
  if (!empty) return invalid("out", "the folder {} is not empty: give a new or empty folder", path);
  return {};
}

}  // namespace

Result<Converted> convert(const std::string& from, const std::string& to, const ConvertOptions& options) {
  TRY(json::value config, read_json_file(from + "/config.json"));
  TRY(const ModelSpec spec, load_spec(from));
  TRY(const Checkpoint checkpoint, open_checkpoint(from));
  TRY(Network network, checked_network(spec, checkpoint));
  TRY(const Targets targets, targets_of(network, options));
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (tensor.packed) return invalid("in", "tensor {} is already quantised", tensor.name);
  TRY_VOID(make_empty_directory(to));
  const std::string file = to + "/model.safetensors";
  const auto written = write_tensors(checkpoint, targets, plain_format(network, checkpoint), file, options);
  if (!written || !checkpoint.intact()) {
    std::error_code ignored;
    fs::remove(file, ignored);
    TRY_VOID(checkpoint.intact());
    return std::unexpected(written.error());
  }
  TRY_VOID(copy_others(from, to));
  config.as_object()["quantization_config"] = description(network, checkpoint, targets, options);
  std::ofstream out(to + "/config.json");
  out << json::serialize(config) << '\n';
  if (!out.flush()) return failure(ErrorCode::io, "cannot write {}/config.json", to);
  return Converted{count_parameters(spec).total, checkpoint.bytes(), *written};
}

}  // namespace octavo
