// Fuzzer: scans mutated request bodies. The scan must not crash, and must not use more memory than a small
// multiple of the body.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "fleet/scan/request_scan.h"
#include "fuzz/json_mutator.h"

namespace {

// Together, these bodies contain every field that the scan reads.
const octavo::fuzz::JsonMutator& mutator() {
  static const octavo::fuzz::JsonMutator m({
      R"({"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text",
          "text": "t"}, "s"]}], "stream": true, "priority": 1, "max_tokens": 5, "max_completion_tokens": 6, "cache_salt": "s",
          "tools": [{"type": "function", "function": {"name": "f"}}]})",
      R"({"model": "m", "prompt": ["a", "b"], "max_tokens": 3})",
      R"({"prompt": [[1, 2], [3]], "max_output_tokens": 3})",
      R"({"prompt": [1, 2, 3], "system": "s", "instructions": [{"text": "i"}]})",
      R"({"input": [{"role": "user", "content": "x"}], "instructions": "i"})",
      R"({"input": ["a", "b"]})",
      R"({"text": "x", "query": "q", "input_ids": [1]})",
  });
  return m;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return mutator()(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  octavo::http::Request request;
  request.body.assign(reinterpret_cast<const char*>(data), size);
  request.headers.add("X-Session-Id", request.body.substr(0, 16));
  const octavo::fleet::RouteRequest route = octavo::fleet::scan_request(request);
  CHECK(route.text.size() <= 2 * size + 16);
  CHECK(route.tokens.size() <= size + 4);
  CHECK(route.body.error.empty() || (route.model.empty() && route.text.empty()));
  return 0;
}
