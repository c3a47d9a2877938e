#include "fleet/route/incoming.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "fleet/relay/relay.h"
#include "fleet/scan/request_scan.h"
#include "openai/ollama_names.h"
#include "openai/request_id.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kRankHeader = "X-data-parallel-rank";
// after the client's deadline, the worker has this time to report the missed deadline itself
constexpr int kOwnDeadlineGraceMs = 2'000;

http::Headers without(const http::Headers& headers, std::string_view left_out) {
  http::Headers rest;
  for (const auto& [name, value] : headers)
    if (!http::equal_ignoring_case(name, left_out)) rest.add(name, value);
  return rest;
}

}  // namespace

http::Headers headers_for_workers(const RouterOptions& options, const http::Headers& received,
                                  const std::string& tenant) {
  constexpr std::array<std::string_view, 3> kOwn{"Authorization", "X-Api-Key", kTenantHeader};
  http::Headers headers;
  const bool own_key = !options.tenants.empty();
  for (const auto& [name, value] : passed_on(received))
    if (!own_key || std::ranges::none_of(
                        kOwn, [&](std::string_view own) { return http::equal_ignoring_case(own, name); }))
      headers.add(name, value);
  if (!tenant.empty()) headers.add(std::string(kTenantHeader), tenant);
  headers.set(std::string(kCostHeader), "1");
  if (own_key && !options.api_keys.empty())
    headers.add("Authorization", "Bearer " + options.api_keys.front());
  return headers;
}

std::string request_id(const RouteContext& context, const http::Headers& headers) {
  std::string id = openai::request_id_of(headers);
  for (const std::string& name : context.options.telemetry.request_id_headers)
    if (id.empty()) id = headers.find(name).value_or("");
  return id.empty() ? fmt::format("{:016x}", context.balancer.draw()) : id;
}

Incoming::Incoming(const RouteContext& context, std::shared_ptr<http::Exchange> exchange, std::string tenant)
    : context_(context),
      exchange_(std::move(exchange)),
      arrived_us_(now_us()),
      tenant_(std::move(tenant)),
      headers_(headers_for_workers(context.options, request().headers, tenant_)) {
  if (!headers_.find("X-Request-Id")) headers_.add("X-Request-Id", request_id(context, headers_));
}

std::optional<http::Response> Incoming::read() {
  if (is_encoded()) {
    if (auto refusal = exchange_->decode_body(context_.options.http.body_bytes_max)) return refusal;
    headers_ = without(headers_, "Content-Encoding");
  }
  route_ = scan_request(request());
  if (context_.tokens && !route_.body.unreadable) context_.tokens->write(request(), route_);
  return std::nullopt;
}

bool Incoming::is_encoded() const {
  return !request().body.empty() && request().headers.find("Content-Encoding").has_value();
}

std::uint64_t Incoming::body_bytes_max() const {
  return is_encoded() ? context_.options.http.body_bytes_max : request().body.size();
}

bool Incoming::knows_length() const {
  const openai::Route* known = openai::find_route(request().path);
  return known && known->renders && route_.tokens_are_exact && !route_.several_prompts && !route_.truncated &&
         route_.media.empty();
}

void Incoming::name_no_model() { route_.model.clear(); }
void Incoming::drop_tag() { route_.model.resize(openai::without_latest(route_.model).size()); }

bool Incoming::explains() const { return request().headers.find("X-Octavo-Explain").has_value(); }

bool Incoming::wants_cost() const { return request().headers.find(kCostHeader) == std::string_view("1"); }

std::string Incoming::account() const {
  if (!tenant_.empty()) return tenant_label(tenant_);
  const bool tenants = !context_.options.tenants.empty();
  const auto named = tenants ? std::nullopt : request().headers.find(kTenantHeader);
  return tenant_label(named.value_or(""));
}

double Incoming::seconds() const { return static_cast<double>(now_us() - arrived_us_) * 1e-6; }

http::CallRequest Incoming::call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                         int timeout_ms, bool again) const {
  http::CallRequest call{.address = *http::parse_base_url(endpoint.url),
                         .method = request().method,
                         .target = target_of(request()),
                         .headers = headers_,
                         .body = std::move(body),
                         .timeout_ms = timeout_ms};
  if (route_.timeout_s > 0 && again)
    call.headers.set("X-Request-Timeout",
                     fmt::format("{:.3f}", std::max(route_.timeout_s - seconds(), 0.001)));
  if (endpoint.shares_port && !call.headers.find(kRankHeader))
    call.headers.add(std::string(kRankHeader), std::to_string(endpoint.rank));
  return call;
}

http::CallRequest Incoming::cost_request(const Endpoint& endpoint, std::string_view cost_id) const {
  constexpr int kTimeoutMs = 2'000;
  http::CallRequest call = call_request(endpoint, nullptr, kTimeoutMs, false);
  call.method = "GET";
  call.target = fmt::format("/octavo/cost/{}", cost_id);
  call.headers = without(call.headers, "Content-Type");
  return call;
}

// The returned pointer shares ownership of the exchange, which owns the body.
std::shared_ptr<const std::string> Incoming::body() const {
  if (request().body.empty() && request().method != "POST") return nullptr;
  return {exchange_, &request().body};
}

bool Incoming::past_own_deadline() const { return route_.timeout_s > 0 && seconds() >= route_.timeout_s; }

int Incoming::left_ms() const {
  double limit_ms = context_.options.request_timeout_ms;
  if (route_.timeout_s > 0) limit_ms = std::min(limit_ms, route_.timeout_s * 1e3 + kOwnDeadlineGraceMs);
  return static_cast<int>(std::max(limit_ms - seconds() * 1e3, 0.0));
}

}  // namespace octavo::fleet
