#include "model/fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// Several pieces, of which the last one is shorter.
constexpr std::size_t kBytes = (std::size_t{40} << 20) + 12'345;

struct Folder {
  ScratchDirectory scratch;
  Folder() {
    scratch.write("config.json", "{}");
    scratch.write("model.safetensors", std::string(kBytes, 'w'));
  }
  fs::path weights() const { return scratch / "model.safetensors"; }
  void change(std::size_t at) const {
    std::fstream file(weights(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('x');
  }
  std::string print() const { return model_fingerprint(scratch.path()).value(); }
};

TEST(Fingerprint, CopiesHaveTheSame) {
  const Folder one, other;
  EXPECT_EQ(one.print().size(), 32u);
  EXPECT_EQ(one.print(), other.print());
  EXPECT_EQ(sampled_fingerprint(one.scratch.path()).value(),
            sampled_fingerprint(other.scratch.path()).value());
  other.scratch.write("README.md", "of no model");
  EXPECT_EQ(one.print(), other.print());
  other.scratch.write("config.json", "{ }");
  EXPECT_NE(one.print(), other.print());
}

// Training may change only one small tensor.
TEST(Fingerprint, EveryByteCounts) {
  const Folder folder;
  std::string last = folder.print();
  for (const std::size_t at : {std::size_t{0}, kBytes / 3 + 17, (std::size_t{32} << 20) - 1, kBytes - 6}) {
    folder.change(at);
    const std::string now = folder.print();
    EXPECT_NE(now, last) << at;
    last = now;
  }
}

TEST(Fingerprint, WeightsMayStandElsewhere) {
  const Folder model, trained;
  trained.change(5'000'000);
  const std::string path = model.scratch.path();
  EXPECT_EQ(model_fingerprint(path, path).value(), model.print());
  EXPECT_EQ(model_fingerprint(path, trained.scratch.path()).value(), trained.print());
  EXPECT_NE(trained.print(), model.print());
  fs::remove(model.weights());
  EXPECT_NE(model_fingerprint(path, trained.scratch.path()).value(), model.print());
  EXPECT_FALSE(model_fingerprint(path + "/nothing.gguf"));
}

}  // namespace
}  // namespace octavo
