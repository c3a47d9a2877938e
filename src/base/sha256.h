// Incremental SHA-256.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace octavo {

class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void add(std::span<const std::byte> bytes);
  // Returns 64 lower-case hexadecimal digits. Do not call add() afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
