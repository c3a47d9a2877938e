// Reads the golden files in tests/data/vision and tests/data/sound, for tests.
// tools/goldens/make_vision_goldens.py and make_sound_goldens.py write them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "media/image.h"
#include "media/image_parts.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"

namespace octavo::media {

inline constexpr const char* kVisionRoot = "tests/data/vision/";
inline constexpr const char* kSoundRoot = "tests/data/sound/";

inline std::string file_bytes(const std::string& path) {
  const auto file = MappedFile::open(path).value();
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

inline constexpr const char* kVideoFile = "/video.safetensors";

// Golden tensors of a test case, by name.
class VisionGolden {
 public:
  explicit VisionGolden(const std::string& name, const std::string& root = kVisionRoot,
                        const std::string& file = "/golden.safetensors")
      : directory(root + name),
        file_(MappedFile::open(directory + file).value()),
        tensors_(parse_safetensors(file_.bytes(), directory).value()) {}

  const std::string directory;

  const StoredTensor& tensor(const std::string& name) const {
    for (const StoredTensor& t : tensors_)
      if (t.name == name) return t;
    CHECK(false, "no tensor {}", name);
    std::abort();
  }
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const StoredTensor& t = tensor(name);
    std::vector<T> values(t.bytes.size() / sizeof(T));
    std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
    return values;
  }
  // [height, width, 3]
  Image image(const std::string& name) const {
    const StoredTensor& t = tensor(name);
    return {static_cast<int>(t.shape[1]), static_cast<int>(t.shape[0]), values<std::uint8_t>(name)};
  }
  // [tiles, size, size, 3]
  std::vector<Image> tiles(const std::string& name) const {
    const StoredTensor& t = tensor(name);
    const std::vector<std::uint8_t> all = values<std::uint8_t>(name);
    const std::ptrdiff_t each = t.shape[1] * t.shape[2] * 3;
    std::vector<Image> tiles;
    for (std::ptrdiff_t i = 0; i < t.shape[0]; ++i)
      tiles.push_back({static_cast<int>(t.shape[2]),
                       static_cast<int>(t.shape[1]),
                       {all.begin() + i * each, all.begin() + (i + 1) * each}});
    return tiles;
  }

 private:
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
};

// Compares the part of each image with that of transformers. `config` must not cut images into tiles.
inline void expect_whole_images(const VisionGolden& golden, const ProcessorConfig& config) {
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(fmt::format("{}, {}", golden.directory, picture));
    Image image = golden.image(fmt::format("decoded.{}", picture));
    const PartGrid grid = part_grid(image.width, image.height, config).value();
    const std::vector<Image> parts = cut_parts(std::move(image), grid, config);
    const Image expected = golden.tiles(fmt::format("tiles.{}", picture)).at(0);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].width, expected.width);
    EXPECT_EQ(parts[0].height, expected.height);
    EXPECT_EQ(parts[0].pixels, expected.pixels);
  }
}

}  // namespace octavo::media
