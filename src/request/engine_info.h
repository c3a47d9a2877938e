// What a client learns from an engine when it starts: what it runs, and what it takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "request/pooling.h"

namespace octavo {

struct EngineInfo {
  int index = 0;               // of the engine, or of the first behind one client; labels its metrics
  int engines = 1;             // behind one client, numbered one behind the other
  std::string architecture{};  // of the model
  std::int64_t weight_bytes = 0;
  std::int64_t cache_bytes = 0;
  int num_blocks = 0;  // of the KV cache
  int block_size = 0;  // tokens

  // The limits on a request, all of them. More is refused by submit(); a client that knows them can say so
  // before.
  int vocab_size = 0;
  int max_model_len = 0;    // tokens of prompt and answer together, or of a text that is read
  int max_num_seqs = 0;     // answers that run at a time
  int max_queued = 4096;    // answers that wait beyond those
  int max_logprobs = 20;    // of one request; -1: the whole vocabulary
  bool priorities = false;  // Request::priority has an effect
  int max_loras = 0;        // LoRA adapters in memory at a time; 0: none at all

  // Images in prompts are squares of `size` pixels that stand for `tokens` tokens each, each of them
  // `token_id`. Size 0: they are grids of any number of tokens up to this, of unit x unit pixels each. No
  // tokens: the model does not see.
  struct ImageRule {
    int size = 0;
    int tokens = 0;
    int token_id = 0;
    int unit = 0;
    bool row_breaks = false;  // MediaPart::row_breaks
    bool whole = false;       // their tokens see each other: a step computes all of an image
    bool tiled = false;       // an image is several such squares (MediaPart::Tiles)
    // Then: not 0: behind their tokens and one more come those of the whole image, which is made of them, with one
    // behind each row; and patches of the squares, so many a token's side, may show nothing.
    int whole_last = 0;
    // Of videos, whose tokens are this one; the most frames of a part, 0: the model sees none.
    int frames = 0;
    int video_token_id = 0;
    float time_steps = 0;  // of the axis of time, a second; 0: one a part
  };
  ImageRule image{};

  // A sound is a log-mel spectrogram f32 [mels, frames]; no mels: the model does not hear. Sounds in prompts
  // stand for up to `tokens` tokens each, one for `frames / tokens` frames, each of them `token_id`. No
  // tokens: every prompt comes with one sound beside it, of which the engine remembers `places` at a time.
  // whole: a sound is cut into windows of that size, each of which stands for all of these tokens.
  struct SoundRule {
    int mels = 0;
    int frames = 0;
    int places = 0;
    int tokens = 0;
    int token_id = 0;
    bool whole = false;
  };
  SoundRule sound{};

  // A prompt is read by an encoder, and the model's own text begins with these tokens (Vaswani et al., "Attention Is All
  // You Need", 2017). `tokens`: of the longest prompt; none: the model has no such encoder. The engine remembers
  // `places` prompts at a time.
  struct SourceRule {
    int tokens = 0;
    int places = 0;
    std::vector<int> begin{};
  };
  SourceRule source{};
  int places() const { return sound.places > 0 ? sound.places : source.places; }

  Task task = Task::generate;  // of requests
  // Of the other tasks:
  int pooled_size = 0;                // of Output::pooled, of a text or of each token
  bool normalise = false;             // vectors are meant to have length 1
  std::vector<std::string> labels{};  // beside the scores
  ScoreActivation score_activation = ScoreActivation::none;

  // Of a model of texts that has a head of its own for their tokens, another task of requests. Those tokens
  // are meant to be left out that begin or end a text; -1: none.
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
  // Of the model's heads the one for a task: 0, or that of a token_head.
  int head_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? static_cast<int>(head - token_heads.data()) + 1 : 0;
  }
  // Whether requests may have this task. A model of texts makes vectors of their tokens, too.
  bool does(Task of) const {
    return of == task || token_head(of) != nullptr || (of == Task::token_embed && task == Task::embed);
  }
  // Of Output::pooled, of a text or of each token.
  int size_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? head->size : pooled_size;
  }
};

}  // namespace octavo
