// The part of SessionTable that exports sessions to other servers and imports them (transfer/session_file.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/quoted_text.h"
#include "engine/cache/kv_cache_side.h"
#include "engine/cache/session_table.h"
#include "transfer/kv_pieces.h"

namespace octavo {
namespace {

// Bytes of the blocks in one part of an export. The number is small, because the engine's thread copies a
// part between two steps.
constexpr std::size_t kPartBytes = 4 << 20;

// Returns the tokens and one arbitrary token after them, because look-ups never find the block of a prompt's
// last token.
std::vector<TokenId> with_last(std::span<const TokenId> tokens) {
  std::vector<TokenId> prompt(tokens.begin(), tokens.end());
  prompt.push_back(0);
  return prompt;
}

}  // namespace

Result<BlockFormat> SessionTable::format_of_moves() const {
  if (moves_.exchange == nullptr)
    return failure(ErrorCode::unsupported,
                   "sessions cannot be exported or imported, because this engine cannot copy KV blocks");
  TRY(BlockFormat format, moves_.exchange->block_format());
  if (format.fingerprint.empty())
    return failure(ErrorCode::unsupported,
                   "sessions cannot be exported or imported, because the engine has no hash of the model's "
                   "files: start the server with --enable-session-import, with several ranks also with "
                   "--kv-transfer-config");
  return format;
}

Result<> SessionTable::check_imported(Sessions::const_iterator session) const {
  if (session->second.next_piece == 0) return {};
  return failure(ErrorCode::resource_exhausted,
                 "the session {} is being imported: send the rest of the file first",
                 quoted_text(session->first.id));
}

Result<SessionInfo> SessionTable::export_part(Sessions::iterator session, int first) const {
  const Session& s = session->second;
  TRY(const BlockFormat format, format_of_moves());
  TRY_VOID(check_imported(session));
  if (s.hold == nullptr || s.hold->keys.empty())
    return failure(ErrorCode::not_found,
                   "the session {} has no cached blocks to export: send its next turn, then export it",
                   quoted_text(session->first.id));
  const PrefixHold& hold = *s.hold;
  const std::vector<KvPiece> pieces = pieces_of(format, 0, static_cast<int>(hold.keys.size()));
  const int all = static_cast<int>(pieces.size());
  if (first < 0 || first >= all)
    return invalid("first", "is {}, but the session has only the pieces 0 to {}", first, all - 1);
  const int most = static_cast<int>(std::max<std::size_t>(1, kPartBytes / format.stride()));
  const int count = std::min(most, all - first);
  const std::span<const KvPiece> part =
      std::span(pieces).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  const std::vector<Hash128> keys =
      piece_keys(part, transfer_keys(hold.tokens, hold.identity, format.block_size, hold.extras));
  const std::vector<KvLocation> locations = locations_of(format, hold, part);
  SessionInfo info = describe(session->first, s);
  info.next_piece = first + count < all ? first + count : 0;
  info.part = begin_session_part({.format = format,
                                  .tokens = hold.tokens,
                                  .identity = hold.identity,
                                  .extras = hold.extras,
                                  .priority = s.priority,
                                  .ttl_s = s.ttl_s,
                                  .pieces = all,
                                  .first = first,
                                  .count = count});
  info.part.reserve(info.part.size() + part.size() * format.stride());
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::span<std::byte> packed = packed_block(format, 64).first(format.stride());
    moves_.exchange->export_piece(locations[i], contents(format, packed));
    seal(format, keys[i], packed);
    info.part.append(reinterpret_cast<const char*>(packed.data()), packed.size());
  }
  return info;
}

// The blocks are reserved at the first part, so a session that does not fit is refused before its blocks are
// sent. Until the last part, no look-up finds them.
Result<SessionTable::Sessions::iterator> SessionTable::import_part(const SessionCommand& command) {
  TRY(const BlockFormat format, format_of_moves());
  TRY(const SessionPart part, read_session_part(command.part));
  const SessionPartHeader& header = part.header;
  if (const std::string other = difference(header.format, format); !other.empty())
    return invalid("file", "does not fit this server, because {} (file and server)", other);
  const std::size_t blocks = header.tokens.size() / static_cast<std::size_t>(format.block_size);
  if (blocks > static_cast<std::size_t>(scheduler_.options().num_blocks))
    return failure(ErrorCode::resource_exhausted,
                   "the file has {} blocks, but the KV cache has only {}: use a server with a larger cache",
                   blocks, scheduler_.options().num_blocks);
  const std::vector<KvPiece> pieces = pieces_of(format, 0, static_cast<int>(blocks));
  if (blocks == 0 || header.tokens.size() % static_cast<std::size_t>(format.block_size) != 0 ||
      header.extras.size() > blocks || header.pieces != static_cast<int>(pieces.size()))
    return invalid("file", "is damaged: its {} tokens do not have {} pieces", header.tokens.size(),
                   header.pieces);
  const std::vector<Hash128> keys =
      piece_keys(std::span(pieces).subspan(static_cast<std::size_t>(header.first),
                                           static_cast<std::size_t>(header.count)),
                 transfer_keys(header.tokens, header.identity, format.block_size, header.extras));
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (const auto good = verify(format, keys[i], part.blocks.subspan(i * format.stride(), format.stride()));
        !good)
      return invalid("file", "is damaged: piece {}: {}", static_cast<std::size_t>(header.first) + i,
                     good.error().message);
  auto it = sessions_.find(command.key);
  if (header.first == 0) {
    TRY(it, begin_import(command.key, header));
  } else if (it == sessions_.end() || it->second.next_piece == 0) {
    return failure(ErrorCode::resource_exhausted,
                   "the import of the session {} has ended, because its blocks were needed: send the file "
                   "again from its first part",
                   quoted_text(command.key.id));
  } else if (it->second.next_piece != header.first || it->second.hold->tokens != header.tokens ||
             it->second.hold->identity != header.identity) {
    return invalid("file", "begins at piece {}, but the import of the session continues at piece {}",
                   header.first, it->second.next_piece);
  }
  import_pieces(*it->second.hold, part);
  it->second.next_piece = header.first + header.count;
  it->second.ended_us = now_us_;
  if (it->second.next_piece == header.pieces) TRY_VOID(end_import(it));
  return it;
}

Result<SessionTable::Sessions::iterator> SessionTable::begin_import(const SessionKey& key,
                                                                    const SessionPartHeader& header) {
  const auto too_large = [&](std::string_view reason) {
    return failure(ErrorCode::resource_exhausted,
                   "the session {} with {} tokens cannot be imported: {}: retry later, or set a larger "
                   "--session-fraction",
                   quoted_text(key.id), header.tokens.size(), reason);
  };
  if (const auto found = sessions_.find(key); found != sessions_.end()) {
    if (found->second.active())
      return failure(ErrorCode::resource_exhausted,
                     "the session {} has an unfinished request: import it after its end",
                     quoted_text(key.id));
    let_go(found);
  }
  if (held_max_ == 0) return too_large("the server holds no sessions");
  const int blocks = static_cast<int>(header.tokens.size()) / scheduler_.options().block_size;
  PrefixHold* const held = scheduler_.hold(with_last(header.tokens), header.identity, blocks, header.extras);
  if (held == nullptr) return too_large("the KV cache has too few free blocks");
  if (held->blocks.held() > held_max_ || find_or_add(key) == nullptr) {
    scheduler_.let_go(held);
    return too_large("it exceeds the limit of all sessions");
  }
  const auto it = sessions_.find(key);
  Session& s = it->second;
  s.ended_us = now_us_;
  s.ttl_s = std::clamp(header.ttl_s, 1, kSessionTtlMaxS);
  s.priority = std::clamp(header.priority, -kSessionPriorityMax, kSessionPriorityMax);
  s.length = std::ssize(header.tokens);
  hold(it, held);
  s.next_piece = header.count;
  keep_limits();
  if (s.hold == nullptr) return too_large("sessions with a higher value use the blocks");
  return it;
}

// Writes the contents of those imported blocks that the cache did not have yet.
void SessionTable::import_pieces(const PrefixHold& hold, const SessionPart& part) {
  const SessionPartHeader& header = part.header;
  const BlockFormat& format = header.format;
  const std::vector<KvPiece> wanted = pieces_of(format, hold.cached, static_cast<int>(hold.keys.size()));
  const std::vector<KvLocation> locations = locations_of(format, hold, wanted);
  const int skipped = header.pieces - static_cast<int>(wanted.size());
  for (int i = std::max(header.first, skipped); i < header.first + header.count; ++i) {
    const auto offset = static_cast<std::size_t>(i - header.first) * format.stride();
    const std::span<std::byte> packed = packed_block(format, 64).first(format.stride());
    std::memcpy(packed.data(), part.blocks.data() + offset, packed.size());
    moves_.exchange->import_piece(locations[static_cast<std::size_t>(i - skipped)], contents(format, packed));
  }
}

// Publishes the blocks. From now on, requests find them, and the session is like any other.
Result<> SessionTable::end_import(Sessions::iterator session) {
  Session& s = session->second;
  note_loaded(scheduler_, *s.hold, s.hold->cached, static_cast<int>(s.hold->keys.size()), moves_.imported);
  scheduler_.publish(*s.hold, static_cast<int>(s.hold->keys.size()));
  PrefixHold* const whole =
      scheduler_.hold(with_last(s.hold->tokens), s.hold->identity, 0, std::vector(s.hold->extras));
  if (whole != nullptr) {
    hold(session, whole);
    return {};
  }
  let_go(session);
  return failure(ErrorCode::resource_exhausted,
                 "the blocks of the session {} were needed for requests: send its file again",
                 quoted_text(session->first.id));
}

}  // namespace octavo
