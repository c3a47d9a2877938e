#include "app/tracing_flag.h"

#include "app/environment.h"

namespace octavo {

Result<std::shared_ptr<Tracer>> start_tracer(const std::string& endpoint, const std::string& service) {
  if (endpoint.empty()) return nullptr;
  const std::string name = environment("OTEL_SERVICE_NAME");
  return Tracer::start(endpoint, name.empty() ? service : name,
                       environment("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"));
}

}  // namespace octavo
