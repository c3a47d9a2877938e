// Options of `octavo sidecar`. Names and defaults are those of llm-d's routing sidecar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "trace/tracer.h"

namespace octavo::fleet {

struct SidecarOptions {
  std::string decoder_url = "http://127.0.0.1:8200";  // URL of the local decode engine
  std::string connector = "nixlv2";
  int prefill_retries_max = 0;
  int prefill_retry_backoff_ms = 200;
  // true: choose a random prefill engine from the header; false: choose the first one
  bool sample_prefillers = false;
  bool only_allowed = false;
  std::vector<std::string> allowed_prefillers = {};  // host:port
  int bootstrap_port = 8998;           // bootstrap port of prefill engines, for SGLang and Mooncake
  int p2p_port = 7777;                 // port of prefill engines with vLLM's OffloadingConnector
  int request_timeout_ms = 1'800'000;  // timeout of each prefill or decode request
  int prefill_timeout_ms = 60'000;     // timeout of a prefill request that the decode request waits for
  int blind_wait_ms = 10'000;  // timeout of engines that report no load; it is longer for long prompts
  http::ServerOptions http = {};
  std::shared_ptr<Tracer> tracer = {};  // null: tracing is off
};

}  // namespace octavo::fleet
