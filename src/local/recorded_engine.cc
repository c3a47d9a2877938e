#include "local/recorded_engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/sha256.h"
#include "local/version.h"
#include "model/fingerprint.h"
#include "tensor/mapped_file.h"
#include "weights/gguf.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "/proc/self/exe";

Result<std::string> hash_of_files(const std::vector<fs::path>& files) {
  Sha256 hash;
  for (const fs::path& path : files) {
    TRY(const MappedFile file, MappedFile::open(path.string()));
    hash.add(file.bytes());
    TRY_VOID(file.intact());
  }
  return hash.hex().substr(0, 32);
}

// Returns "" if a file cannot be read; the engine reports that error.
std::string adapter_hash(const std::string& path) {
  std::vector<fs::path> files;
  if (is_gguf(path)) files.emplace_back(path);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (const fs::path extension = entry.path().extension(); extension == ".safetensors" ||
                                                             extension == ".bin" ||
                                                             entry.path().filename() == "adapter_config.json")
      files.push_back(entry.path());
  std::ranges::sort(files);
  return hash_of_files(files).value_or("");
}

std::string layout_of(const ParallelOptions& parallel) {
  return fmt::format("tensor parallel {}, pipeline parallel {}{}", parallel.tensor_parallel_size,
                     parallel.pipeline_parallel_size,
                     parallel.enable_expert_parallel ? ", expert parallel" : "");
}

std::string formats_of(const EngineOptions& options, const EngineInfo& info) {
  return fmt::format(
      "dtype {}, quantization {}, kv_cache_dtype {}, max_model_len {}{}", options.model.dtype,
      options.model.quantization, options.cache.dtype, info.max_model_len,
      options.model.hf_overrides.empty() ? "" : ", hf_overrides " + options.model.hf_overrides);
}

}  // namespace

Result<RecordedEngine> recorded_engine(const EngineOptions& options, const EngineInfo& info) {
  EngineIdentity identity{.version = std::string(kVersion),
                          .device = info.device,
                          .layout = layout_of(options.parallel),
                          .settings = formats_of(options, info)};
  TRY(identity.binary, hash_of_files({kProgram}));
  if (options.model.load_format == "dummy") {
    identity.weights = fmt::format("dummy {}", options.seed);
  } else {
    TRY(identity.weights, model_fingerprint(options.model.dir, options.model.weights_dir));
    if (const std::string mmproj = options.model.mmproj_file(); !mmproj.empty()) {
      TRY(const std::string encoder, model_fingerprint(mmproj));
      identity.weights += " " + encoder;
    }
  }
  return RecordedEngine{.identity = std::move(identity), .seed = options.seed, .adapter_of = adapter_hash};
}

Result<std::unique_ptr<EngineClient>> record_requests(std::unique_ptr<EngineClient> engine,
                                                      const EngineOptions& options,
                                                      const RecordOptions& record) {
  TRY(RecordedEngine recorded, recorded_engine(options, engine->info()));
  recorded.media = record.media && !record.hashes_only;
  TRY(auto log, RecordLog::open(record));
  log_info("recording requests in {}, weights {}", record.dir, recorded.identity.weights);
  return std::make_unique<RecordingEngine>(std::move(engine), std::move(log), std::move(recorded));
}

}  // namespace octavo
