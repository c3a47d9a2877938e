#include "fleet/scan/body_json.h"

#include <new>
#include <utility>

#include "base/exact_json.h"

namespace octavo::fleet {

namespace json = boost::json;

void* BodyMemory::do_allocate(std::size_t bytes, std::size_t) {
  const bool limited = !parsed_ || !*parsed_;
  if (limited && bytes > bytes_max_ - used_) throw std::bad_alloc();
  void* memory = ::operator new(bytes);
  used_ += bytes;
  return memory;
}

void BodyMemory::do_deallocate(void* memory, std::size_t bytes, std::size_t) {
  used_ -= bytes;
  ::operator delete(memory);
}

Result<json::value> body_json(std::string_view text, json::storage_ptr memory) {
  try {
    boost::system::error_code error;
    json::value value = parse_exact_json(text, error, std::move(memory));
    if (error) return invalid("body", "{}", error.message());
    return value;
  } catch (const std::bad_alloc&) {
    return invalid("body", "too many values for its size");
  }
}

}  // namespace octavo::fleet
