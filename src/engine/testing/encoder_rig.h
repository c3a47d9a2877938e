// For tests: engines of encoder models, with texts and the outputs of transformers for these texts.
// tools/goldens/make_encoder_goldens.py creates the data in tests/data/encoders.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <future>
#include <numeric>

#include "base/testing/eventually.h"
#include "base/testing/length.h"
#include "base/testing/scratch_directory.h"
#include "engine/load/load.h"
#include "engine/testing/rig.h"
#include "kernels/backends.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"
#include "weights/testing/tensor_values.h"

namespace octavo::encoder_rig {

namespace fs = std::filesystem;

struct Text {
  std::vector<TokenId> ids;
  std::optional<int> second;
  std::vector<float> expected;
};

// Returns the texts of a test case, with the outputs of transformers.
inline std::vector<Text> read_texts(const std::string& directory, std::string_view expected) {
  const auto file = MappedFile::open(directory + "/golden.safetensors").value();
  const auto tensors = parse_safetensors(file.bytes(), directory).value();
  const auto ids = values_of<TokenId>(tensors, "ids");
  const auto types = values_of<std::int32_t>(tensors, "types");
  const auto starts = values_of<std::int32_t>(tensors, "starts");
  const auto rows = values_of<float>(tensors, expected);
  const bool of_tokens = expected == "tokens" || expected == "vectors" || expected == "weights";
  const std::ptrdiff_t vectors = of_tokens ? std::ssize(ids) : std::ssize(starts) - 1;
  const std::ptrdiff_t width = std::ssize(rows) / vectors;
  std::vector<Text> texts;
  for (std::ptrdiff_t s = 0; s + 1 < std::ssize(starts); ++s) {
    const std::int32_t begin = starts[static_cast<std::size_t>(s)],
                       end = starts[static_cast<std::size_t>(s) + 1];
    Text& text = texts.emplace_back();
    text.ids.assign(ids.begin() + begin, ids.begin() + end);
    const std::ptrdiff_t first = of_tokens ? begin : s, last = of_tokens ? end : s + 1;
    text.expected.assign(rows.begin() + first * width, rows.begin() + last * width);
    const auto second = std::find(types.begin() + begin, types.begin() + end, 1);
    if (second != types.begin() + end) text.second = static_cast<int>(second - types.begin() - begin);
  }
  return texts;
}

inline Result<std::unique_ptr<Engine>> encoder_engine_of(const std::string& directory,
                                                         std::optional<CpuIsa> isa, const std::string& device,
                                                         const std::string& runner = "auto",
                                                         EngineOptions options = {}) {
  options.model.dir = directory;
  options.device.type = device;
  options.model.dtype = "float32";
  options.device.threads = 2;
  options.model.runner = runner;
  const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = isa}).value(); };
  return isa ? load_engine(options, {.dress = dress}) : load_engine(options);
}

// Returns the engine's outputs for texts that arrive together. task_of(i) is the task of text i.
inline std::vector<std::vector<float>> pooled(Engine& engine, std::span<const Text> texts,
                                              const std::function<Task(std::size_t)>& task_of = {}) {
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (const Text& text : texts) {
    Request request;
    request.task = task_of ? task_of(recorders.size()) : engine.info().tasks.default_task;
    request.prompt = text.ids;
    request.second_text = text.second;
    recorders.push_back(std::make_shared<Recorder>());
    const auto id = engine.submit(std::move(request), recorders.back());
    CHECK(id.has_value(), "{}", id.error().message);
  }
  std::vector<std::vector<float>> vectors;
  for (const auto& recorder : recorders) {
    recorder->wait_ended(1);
    EXPECT_EQ(recorder->record().ends.at(0).finished, FinishReason::stop);
    vectors.push_back(recorder->record().ends.at(0).pooled);
  }
  return vectors;
}

inline float most_difference(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size(), "{} and {} numbers", a.size(), b.size());
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

inline void normalise_each(std::vector<float>& vectors, int size) {
  const auto width = static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < vectors.size(); i += width) normalise(std::span(vectors).subspan(i, width));
}

constexpr const char* kRoot = "tests/data/encoders/";

class EncoderEngine : public testing::TestWithParam<std::string> {
 protected:
  void agree(const std::string& directory, std::string_view expected, const EngineOptions& options = {}) {
    const std::vector<Text> texts = read_texts(kRoot + GetParam(), expected);
    ASSERT_GE(texts.size(), 5u);
    const auto check = [&](const std::string& name, std::optional<CpuIsa> isa, const std::string& device) {
      SCOPED_TRACE(name);
      const auto engine = encoder_engine_of(directory, isa, device, "auto", options);
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      const auto together = pooled(**engine, texts);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        std::vector<float> given = together[i];
        if ((*engine)->info().tasks.normalise && expected == "tokens")
          normalise_each(given, (*engine)->info().tasks.pooled_size);
        EXPECT_LE(most_difference(given, texts[i].expected), 1e-4F) << "text " << i;
        EXPECT_EQ(together[i], pooled(**engine, std::span(texts).subspan(i, 1))[0]) << "text " << i;
      }
    };
    const std::string of = GetParam() + std::string(expected) + fs::path(directory).extension().string();
    std::size_t way = 0;
    check("reference", {}, "reference");
    for (const CpuIsa isa : kCpuIsas)
      if (chosen(of, ++way, 3) && make_cpu_backend({.threads = 1, .isa = isa}))
        check(std::string(name(isa)), isa, "cpu");
    if (!chosen(of, ++way, 3) || !make_cuda_backend()) return;
    check("cuda", {}, "cuda");
  }
};

inline std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace octavo::encoder_rig
