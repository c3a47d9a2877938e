// An engine's model and its limits on requests, as a client gets them at the start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "request/pooling.h"

namespace octavo {

struct EngineInfo {
  int index = 0;               // index of the engine, or of the client's first engine; a label in metrics
  int engines = 1;             // engines of the client, with consecutive indices
  std::string architecture{};  // of the model
  std::int64_t weight_bytes = 0;
  std::int64_t cache_bytes = 0;
  int num_blocks = 0;  // KV cache blocks
  int block_size = 0;  // tokens

  // Limits on a request. submit() enforces them; a client that knows them can refuse earlier.
  int vocab_size = 0;
  int max_model_len = 0;    // tokens of prompt and answer together, or of a text for pooling
  int max_num_seqs = 0;     // running answers
  int max_queued = 4096;    // waiting answers
  int max_logprobs = 20;    // per request; -1: the whole vocabulary
  bool priorities = false;  // Request::priority has an effect
  int max_loras = 0;        // LoRA adapters in memory; 0 without LoRA

  // An image in a prompt is a square of `size` pixels and takes `tokens` tokens, all of them `token_id`. Size
  // 0: a grid of at most `tokens` tokens, each of unit x unit pixels. 0 tokens: the model takes no images.
  struct ImageRule {
    int size = 0;
    int tokens = 0;
    int token_id = 0;
    int unit = 0;
    bool row_breaks = false;  // MediaPart::row_breaks
    bool whole = false;       // its tokens attend to each other: a step computes a whole image
    bool tiled = false;       // an image is several such squares (MediaPart::Tiles)
    // With `tiled`, if not 0: patches on a token's side. The tokens of the tiles and one more token come
    // first, then the tokens of the whole image, with one after each row. Patches of the tiles can be empty.
    int whole_last = 0;
    // Maximum number of frames in a part of a video, whose tokens are video_token_id; 0 without
    // videos.
    int frames = 0;
    int video_token_id = 0;
    float time_steps = 0;  // steps on the time axis per second; 0: one step for each part
  };
  ImageRule image{};

  // A sound is a log-mel spectrogram f32 [mels, frames]; 0 mels: the model takes no sound. A sound in a
  // prompt takes up to `tokens` tokens, all of them `token_id`: one for each `frames / tokens` frames. 0
  // tokens: the sound is beside the prompt, one for each prompt, and the engine has `places` slots for them.
  // whole: a longer sound is cut into windows of `frames`, each of which takes `tokens` tokens.
  struct SoundRule {
    int mels = 0;
    int frames = 0;
    int places = 0;
    int tokens = 0;
    int token_id = 0;
    bool whole = false;
  };
  SoundRule sound{};

  // Models whose encoder reads the prompt; the answer begins with the tokens `begin` (Vaswani et al.,
  // "Attention Is All You Need", 2017). `tokens`: maximum of a prompt; 0 without such an encoder. The
  // engine has `places` slots for prompts.
  struct SourceRule {
    int tokens = 0;
    int places = 0;
    std::vector<int> begin{};
  };
  SourceRule source{};
  int places() const { return sound.places > 0 ? sound.places : source.places; }

  Task task = Task::generate;  // default task of requests
  // For the other tasks:
  int pooled_size = 0;                // size of Output::pooled, for the text or for each token
  bool normalise = false;             // vectors have length 1
  std::vector<std::string> labels{};  // names of the scores
  ScoreActivation score_activation = ScoreActivation::none;

  // A separate head for each token, used by another task. At the begin and end of a text, the tokens
  // left_out_first and left_out_last get no result; -1: no such token.
  struct TokenHead {
    Task task = Task::token_embed;
    int size = 0;
    bool normalise = false;
    ScoreActivation activation = ScoreActivation::none;
    int left_out_first = -1;
    int left_out_last = -1;
  };
  std::vector<TokenHead> token_heads{};

  const TokenHead* token_head(Task of) const {
    const auto found = std::ranges::find(token_heads, of, &TokenHead::task);
    return found != token_heads.end() ? &*found : nullptr;
  }
  // Index of the head for a task: 0, or that of a token_head plus 1.
  int head_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? static_cast<int>(head - token_heads.data()) + 1 : 0;
  }
  // Whether requests can have this task. An embedding model also embeds tokens.
  bool does(Task of) const {
    return of == task || token_head(of) != nullptr || (of == Task::token_embed && task == Task::embed);
  }
  // Size of Output::pooled, for a text or for each token.
  int size_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? head->size : pooled_size;
  }
};

}  // namespace octavo
