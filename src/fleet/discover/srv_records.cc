#include "fleet/discover/srv_records.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/quoted_text.h"
#include "fleet/discover/endpoints.h"
#include "fleet/view/fleet_view.h"

// c-ares 1.28 deprecates these functions, but Debian 12 has no replacements.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace octavo::fleet {
namespace {

constexpr int kTimeoutMs = 2'000;
constexpr int kTries = 2;
constexpr std::size_t kNameBytesMax = 253;

struct Record {
  std::string target;
  int port = 0;
  int priority = 0;
  int weight = 0;
};

// Initialises the library once, and never frees it.
const int kBegun = ares_library_init(ARES_LIB_INIT_ALL);

// A set of concurrent queries. finish() waits until all of them are answered.
class Questions {
 public:
  static Result<Questions> begin(const std::string& server) {
    CHECK(kBegun == ARES_SUCCESS, "c-ares: {}", ares_strerror(kBegun));
    ares_options options{};
    options.timeout = kTimeoutMs;
    options.tries = kTries;
    ares_channel channel = nullptr;
    int status = ares_init_options(&channel, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    if (status != ARES_SUCCESS) return failure(ErrorCode::io, "{}", ares_strerror(status));
    Questions questions(channel);
    if (!server.empty()) status = ares_set_servers_ports_csv(channel, server.c_str());
    if (status != ARES_SUCCESS) return invalid("worker-srv-server", "{}", ares_strerror(status));
    return questions;
  }

  Result<std::vector<Record>> records(const std::string& name) {
    struct Answer {
      int status = ARES_ENODATA;
      std::vector<Record> records = {};
    } answer;
    ares_query(
        channel_.get(), name.c_str(), ns_c_in, ns_t_srv,
        [](void* to, int status, int, unsigned char* bytes, int size) {
          auto& into = *static_cast<Answer*>(to);
          ares_srv_reply* list = nullptr;
          into.status = status == ARES_SUCCESS ? ares_parse_srv_reply(bytes, size, &list) : status;
          const std::unique_ptr<void, void (*)(void*)> owned(list, ares_free_data);
          for (; list != nullptr; list = list->next)
            into.records.push_back({list->host, list->port, list->priority, list->weight});
        },
        &answer);
    finish();
    if (answer.status != ARES_SUCCESS) return failure(ErrorCode::io, "{}", ares_strerror(answer.status));
    return std::move(answer.records);
  }

  // Returns addresses such as "10.0.0.1" and "[::1]". Returns an empty list if the name has none.
  Result<std::vector<std::string>> addresses(const std::string& name) {
    struct Answer {
      int status = ARES_ENODATA;
      std::vector<std::string> found = {};
    } answer;
    ares_addrinfo_hints hints{};
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(
        channel_.get(), name.c_str(), nullptr, &hints,
        [](void* to, int status, int, ares_addrinfo* info) {
          auto& into = *static_cast<Answer*>(to);
          into.status = status;
          const std::unique_ptr<ares_addrinfo, void (*)(ares_addrinfo*)> owned(info, ares_freeaddrinfo);
          for (const ares_addrinfo_node* at = info ? info->nodes : nullptr; at != nullptr; at = at->ai_next) {
            char text[INET6_ADDRSTRLEN];
            const bool v6 = at->ai_family == AF_INET6;
            const void* address =
                v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(at->ai_addr)->sin6_addr)
                   : &reinterpret_cast<const sockaddr_in*>(at->ai_addr)->sin_addr;
            if (inet_ntop(at->ai_family, address, text, sizeof text) == nullptr) continue;
            into.found.push_back(v6 ? fmt::format("[{}]", text) : text);
          }
        },
        &answer);
    finish();
    if (answer.status != ARES_SUCCESS && answer.status != ARES_ENOTFOUND && answer.status != ARES_ENODATA)
      return failure(ErrorCode::io, "{}: {}", name, ares_strerror(answer.status));
    return std::move(answer.found);
  }

 private:
  explicit Questions(ares_channel channel) : channel_(channel, ares_destroy) {}

  // Waits with poll(), because select() limits the number of open files.
  void finish() {
    ares_channel channel = channel_.get();
    while (true) {
      std::array<ares_socket_t, ARES_GETSOCK_MAXNUM> sockets;
      const auto wanted = static_cast<unsigned>(ares_getsock(channel, sockets.data(), sockets.size()));
      std::array<pollfd, ARES_GETSOCK_MAXNUM> polled;
      nfds_t count = 0;
      for (unsigned i = 0; i < sockets.size(); ++i) {
        const bool reads = ARES_GETSOCK_READABLE(wanted, i), writes = ARES_GETSOCK_WRITABLE(wanted, i);
        if (!reads && !writes) break;
        polled[count++] = {sockets[i], static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0};
      }
      if (count == 0) return;
      timeval most{.tv_sec = 1, .tv_usec = 0}, left;
      const timeval* wait = ares_timeout(channel, &most, &left);
      poll(polled.data(), count, static_cast<int>(wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1));
      for (nfds_t i = 0; i < count; ++i) {
        const bool readable = polled[i].revents & (POLLIN | POLLERR | POLLHUP);
        const bool writable = polled[i].revents & POLLOUT;
        ares_process_fd(channel, readable ? polled[i].fd : ARES_SOCKET_BAD,
                        writable ? polled[i].fd : ARES_SOCKET_BAD);
      }
    }
  }

  std::unique_ptr<ares_channeldata, void (*)(ares_channel)> channel_;
};

Result<std::vector<Endpoint>> workers_of(const std::string& name, const std::string& server) {
  TRY(Questions questions, Questions::begin(server));
  TRY(std::vector<Record> records, questions.records(name));
  std::ranges::stable_sort(records, {}, &Record::priority);
  std::vector<Endpoint> workers;
  for (const Record& record : records) {
    // the target "." means that the service does not exist
    if (record.target.empty() || record.target == ".") continue;
    TRY(const auto addresses, questions.addresses(record.target));
    for (const std::string& address : addresses) {
      auto worker = endpoint_of_address(fmt::format("{}:{}", address, record.port));
      if (!worker || std::ranges::find(workers, worker->name, &Endpoint::name) != workers.end()) continue;
      worker->priority = record.priority;
      worker->weight = record.weight;
      workers.push_back(*std::move(worker));
    }
    if (workers.size() > kEndpointsMax)
      return failure(ErrorCode::resource_exhausted, "the records name more than {} workers", kEndpointsMax);
  }
  return workers;
}

}  // namespace

Result<PolledOptions> poll_srv(const std::string& name, const std::string& server, int interval_ms) {
  const auto in_names = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (name.empty() || name.size() > kNameBytesMax || !std::ranges::all_of(name, in_names))
    return invalid("worker-srv", "must be a name like _http._tcp.replicas.internal, got {}",
                   quoted_text(name));
  if (!server.empty() && !endpoint_of_address(server))
    return invalid("worker-srv-server", "must be an address and a port, like 127.0.0.1:8600, got {}",
                   quoted_text(server));
  return PolledOptions{.source = "SRV, " + name, .interval_ms = interval_ms, .read = [name, server] {
                         return workers_of(name, server);
                       }};
}

}  // namespace octavo::fleet

#pragma GCC diagnostic pop
