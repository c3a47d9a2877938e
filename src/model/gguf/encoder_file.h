// The metadata and tensor names of an mmproj file, which contains the encoder of a GGUF model.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/config.h"
#include "model/names.h"
#include "weights/gguf.h"

namespace octavo {

// Value of general.architecture in mmproj files.
inline constexpr std::string_view kEncoderArchitecture = "clip";

// Keys in arguments have no prefix: "image_size" means "clip.vision.image_size". Errors name the file and the
// key or the tensor.
class EncoderFile {
 public:
  // Returns an error on "mmproj" if the file is not an mmproj file, or if it has no image encoder.
  static Result<EncoderFile> of(const Gguf& gguf);

  const std::string& what() const { return gguf_->metadata.what(); }
  const std::string& projector() const { return projector_; }  // type of the projector

  Result<int> integer(std::string_view key, Config::Range range, std::optional<int> absent = {}) const;
  Result<double> number(std::string_view key, Config::RealRange range) const;
  // Returns a list of three numbers, one for each colour channel.
  Result<boost::json::array> channels(std::string_view key) const;
  // Returns a list of numbers, which is empty if the key is missing.
  Result<std::vector<double>> numbers(std::string_view key) const;
  // The key has the prefix "clip.". A missing key is false.
  Result<bool> flag(std::string_view key) const;

  bool has(std::string_view tensor) const { return gguf_->find(tensor) != nullptr; }
  // Return the first or the last dimension of a matrix or a stack of matrices.
  Result<int> rows(std::string_view tensor) const;
  Result<int> columns(std::string_view tensor) const;
  // Returns the number of learned positions on one axis, from a stack with a table for each axis.
  Result<int> positions() const;

  // Returns whether the names of the matrices of MLPs are exchanged, as in older files.
  bool mlp_names_exchanged() const;
  // Returns the tensor names of an image encoder, without its projector.
  Names names() const;

 private:
  EncoderFile(const Gguf& gguf, std::string projector) : gguf_(&gguf), projector_(std::move(projector)) {}
  Result<const StoredTensor*> matrix(std::string_view tensor) const;

  const Gguf* gguf_;
  std::string projector_;
};

}  // namespace octavo
