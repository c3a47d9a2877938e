// Options of `octavo sidecar`, with the names and defaults of llm-d's routing sidecar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "trace/tracer.h"

namespace octavo::fleet {

struct SidecarOptions {
  std::string decoder_url = "http://127.0.0.1:8200";  // URL of the local engine
  std::string connector = "nixlv2";
  int prefill_retries_max = 0;
  int prefill_retry_backoff_ms = 200;
  bool sample_prefillers = false;  // choose a random prefill engine of the header instead of the first
  bool only_allowed = false;       // allow only prefill engines in allowed_prefillers
  std::vector<std::string> allowed_prefillers = {};  // host:port
  int bootstrap_port = 8998;                         // bootstrap port of prefill engines (SGLang, Mooncake)
  int p2p_port = 7777;                 // port of prefill engines with vLLM's OffloadingConnector
  int request_timeout_ms = 1'800'000;  // timeout of a prefill or decode request
  int prefill_timeout_ms = 60'000;     // timeout of a prefill request for which the answer waits
  int blind_wait_ms = 10'000;          // timeout for engines that report no load; longer for long prompts
  http::ServerOptions http = {};
  std::shared_ptr<Tracer> tracer = {};  // null: no spans
};

}  // namespace octavo::fleet
