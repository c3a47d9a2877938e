#include "grpc/session.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace octavo::grpc {
namespace {

constexpr std::size_t kPrefixBytes = 5;  // bytes before each message: compressed flag and size
constexpr std::size_t kSendBytes = 64 << 10;
// Maximum number of unsent reply bytes. A client that does not read gets no further replies above this limit.
constexpr std::size_t kOutBytesMax = 256 << 10;
// number of bytes that a call may receive while its receiver is paused
constexpr std::int32_t kStreamWindow = 256 << 10;
// maximum number of received, unprocessed bytes of one connection
constexpr std::int32_t kSessionWindow = 16 << 20;
constexpr std::uint32_t kCallsMax = 1 << 16;
constexpr std::uint32_t kHeaderBytesMax = 16 << 10;  // maximum bytes of the headers of one call

nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

// gRPC's percent-encoding of '%' and of bytes that are not printable ASCII.
std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%')
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace

char* Call::send(std::size_t bytes) {
  CHECK(bytes <= UINT32_MAX, "a message of {} bytes", bytes);
  const std::size_t at = out_.size();
  out_.resize(at + kPrefixBytes + bytes);
  char* to = out_.data() + at;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) to[i] = static_cast<char>(bytes >> 8 * (4 - i));
  if (session_ && !finished_) session_->answer(*this);
  return to + kPrefixBytes;
}

void Call::finish(Status status, std::string_view message) {
  if (!session_ || finished_) return;
  finished_ = true;
  status_ = status;
  status_message_ = percent_encoded(message);
  session_->answer(*this);
}

void Call::resume() {
  waits_ = false;
  if (!session_) return;
  session_->give_back(*this, std::exchange(held_bytes_, 0));
  session_->pump(*this);
}

struct Session::Callbacks {
  static Session& of(void* user) { return *static_cast<Session*>(user); }

  static Call* call_of(nghttp2_session* session, std::int32_t stream) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, stream));
  }

  static int begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    Session& self = of(user);
    const auto call = std::make_shared<Call>(self.host_);
    call->session_ = &self;
    call->stream_ = frame->hd.stream_id;
    self.calls_.emplace(call->stream_, call);
    return nghttp2_session_set_stream_user_data(session, call->stream_, call.get());
  }

  static int header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                    std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                    void*) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    Call* call = call_of(session, frame->hd.stream_id);
    if (!call) return 0;
    const auto text = [](const std::uint8_t* bytes, std::size_t size) {
      return std::string_view(reinterpret_cast<const char*>(bytes), size);
    };
    const std::string_view key = text(name, name_size);
    if (key == ":method") call->method_ = text(value, value_size);
    if (key == ":path") call->path_ = text(value, value_size);
    if (key == "content-type") call->content_type_ = text(value, value_size);
    if (key == "traceparent") call->traceparent_ = text(value, value_size);
    return 0;
  }

  static int received(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Session& self = of(user);
    self.began_ = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Call* call = call_of(session, frame->hd.stream_id);
    if (!call) return 0;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) call->client_done_ = true;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) self.open(*call);
    if (call->client_done_) self.pump(*call);
    return 0;
  }

  static int data(nghttp2_session* session, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                  std::size_t size, void* user) {
    nghttp2_session_consume_connection(session, size);
    if (Call* call = call_of(session, stream))
      of(user).take(*call, {reinterpret_cast<const char*>(bytes), size});
    return 0;
  }

  // Resets the stream, because the client may continue to send after the status.
  static int sent(nghttp2_session* session, const nghttp2_frame* frame, void*) {
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    const Call* call = call_of(session, frame->hd.stream_id);
    if (!call || call->client_done_) return 0;
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
  }

  static int closed(nghttp2_session*, std::int32_t stream, std::uint32_t, void* user) {
    Session& self = of(user);
    if (auto node = self.calls_.extract(stream)) self.end(*node.mapped());
    return 0;
  }

  static ssize_t read(nghttp2_session*, std::int32_t, std::uint8_t* bytes, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* source, void* user) {
    return of(user).fill(*static_cast<Call*>(source->ptr), {reinterpret_cast<char*>(bytes), size}, *flags);
  }
};

Session::Session(const Methods& methods, std::size_t message_bytes_max, std::weak_ptr<Host> host)
    : methods_(methods), message_bytes_max_(message_bytes_max), host_(std::move(host)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::received);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::closed);
  // With this option, a paused call receives at most kStreamWindow bytes.
  nghttp2_option_set_no_auto_window_update(option, 1);
  CHECK(nghttp2_session_server_new2(&session_, callbacks, this, option) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  const std::array<nghttp2_settings_entry, 3> settings{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kCallsMax},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kHeaderBytesMax},
  }};
  CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kSessionWindow) == 0);
}

Session::~Session() {
  for (const auto& [stream, call] : std::exchange(calls_, {})) end(*call);
  nghttp2_session_del(session_);
}

bool Session::receive(std::span<const char> bytes) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return nghttp2_session_mem_recv(session_, from, bytes.size()) >= 0;
}

void Session::send(std::string& bytes) {
  while (bytes.size() < kSendBytes) {
    const std::uint8_t* some = nullptr;
    const ssize_t count = nghttp2_session_mem_send(session_, &some);
    if (count > 0) {
      bytes.append(reinterpret_cast<const char*>(some), static_cast<std::size_t>(count));
      continue;
    }
    if (drained_.empty()) break;
    for (const auto& call : std::exchange(drained_, {})) pump(*call);
  }
}

bool Session::over() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

void Session::shut_down() {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

void Session::open(Call& call) {
  if (call.method_ != "POST" || !call.content_type_.starts_with("application/grpc")) {
    const nghttp2_nv status = field(":status", "415");
    nghttp2_submit_response(session_, call.stream_, &status, 1, nullptr);
    call.finished_ = true;
    return;
  }
  const auto method = methods_.find(call.path_);
  if (method == methods_.end()) return call.finish(Status::unimplemented, "unknown method " + call.path_);
  call.receiver_ = method->second(calls_.at(call.stream_));
}

void Session::take(Call& call, std::string_view bytes) {
  if (!call.finished_) call.in_ += bytes;
  if (call.waits_ || call.out_full_)
    call.held_bytes_ += bytes.size();
  else
    give_back(call, bytes.size());
  pump(call);
}

void Session::give_back(Call& call, std::size_t bytes) {
  if (bytes > 0) nghttp2_session_consume_stream(session_, call.stream_, bytes);
}

// Delivers messages until the receiver pauses.
void Session::pump(Call& call) {
  if (!call.session_ || call.finished_) return;
  std::size_t at = 0;
  while (!call.waits_ && !call.out_full_ && !call.finished_ && take_message(call, at)) {
  }
  call.in_.erase(0, at);
  if (!call.client_done_ || call.waits_ || call.out_full_ || call.finished_) return;
  if (!call.in_.empty()) return call.finish(Status::invalid_argument, "the last message is incomplete");
  call.receiver_->half_closed();
}

// Delivers the message at `at` and advances `at`. Returns false if it is incomplete.
bool Session::take_message(Call& call, std::size_t& at) {
  const std::string_view left = std::string_view(call.in_).substr(at);
  if (left.size() < kPrefixBytes) return false;
  std::size_t size = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) size = size << 8 | static_cast<unsigned char>(left[i]);
  if (left[0] != 0) {
    call.finish(Status::unimplemented, "compressed messages are not supported");
    return false;
  }
  if (size > message_bytes_max_) {
    call.finish(Status::resource_exhausted,
                fmt::format("a message has {} bytes, the limit is {}", size, message_bytes_max_));
    return false;
  }
  if (left.size() - kPrefixBytes < size) return false;
  at += kPrefixBytes + size;
  call.waits_ = !call.receiver_->message(left.substr(kPrefixBytes, size));
  call.out_full_ = call.out_.size() - call.sent_ > kOutBytesMax;
  return true;
}

// The first call sends the response header; later calls continue to send replies or the status.
void Session::answer(Call& call) {
  if (std::exchange(call.answering_, true)) {
    nghttp2_session_resume_data(session_, call.stream_);
    return;
  }
  const std::string status = fmt::format("{}", static_cast<int>(call.status_));
  const std::array<nghttp2_nv, 4> fields{field(":status", "200"), field("content-type", "application/grpc"),
                                         field("grpc-status", status),
                                         field("grpc-message", call.status_message_)};
  if (call.finished_) {
    nghttp2_submit_response(session_, call.stream_, fields.data(), fields.size(), nullptr);
    return;
  }
  const nghttp2_data_provider provider{.source = {.ptr = &call}, .read_callback = Callbacks::read};
  nghttp2_submit_response(session_, call.stream_, fields.data(), 2, &provider);
}

std::ptrdiff_t Session::fill(Call& call, std::span<char> bytes, std::uint32_t& flags) {
  const std::size_t count = std::min(bytes.size(), call.out_.size() - call.sent_);
  std::memcpy(bytes.data(), call.out_.data() + call.sent_, count);
  call.sent_ += count;
  if (call.sent_ == call.out_.size()) {
    call.out_.clear();
    call.sent_ = 0;
    if (std::exchange(call.out_full_, false)) {
      give_back(call, call.waits_ ? 0 : std::exchange(call.held_bytes_, 0));
      drained_.push_back(calls_.at(call.stream_));
    }
    if (call.finished_) {
      flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::string status = fmt::format("{}", static_cast<int>(call.status_));
      const std::array<nghttp2_nv, 2> fields{field("grpc-status", status),
                                             field("grpc-message", call.status_message_)};
      nghttp2_submit_trailer(session_, call.stream_, fields.data(), fields.size());
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
  }
  return static_cast<std::ptrdiff_t>(count);
}

void Session::end(Call& call) {
  call.session_ = nullptr;
  const auto receiver = std::move(call.receiver_);
  if (receiver && !call.finished_) receiver->disconnected();
}

}  // namespace octavo::grpc
