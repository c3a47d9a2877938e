#include "fleet/scan/body_json.h"

#include <boost/json/parser.hpp>
#include <new>
#include <utility>

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
  json::parse_options options;
  options.max_depth = 64;
  try {
    boost::system::error_code error;
    json::parser parser(memory, options);
    parser.reset(std::move(memory));
    parser.write(text, error);
    if (error) return invalid("body", "{}", error.message());
    return parser.release();
  } catch (const std::bad_alloc&) {
    return invalid("body", "too many values for its size");
  }
}

}  // namespace octavo::fleet
