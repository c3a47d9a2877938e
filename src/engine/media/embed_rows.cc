#include "engine/media/embed_rows.h"

namespace octavo {

Result<> EmbedRows::begin(const MediaPart& prompt) {
  TRY(rows_, backend_.device->allocate(static_cast<std::size_t>(prompt.tokens * row_bytes())));
  backend_.device->upload(*backend_.stream, rows_of(rows_), prompt.bytes.data());
  // Waits for the upload, because the caller frees the bytes of the prompt after this call.
  backend_.stream->synchronize();
  return {};
}

}  // namespace octavo
