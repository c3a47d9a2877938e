// Properties of an engine's model, and the engine's limits on requests. EngineClient::info()
// returns them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "request/pooling.h"

namespace octavo {

struct TaskRules {
  Task default_task = Task::generate;
  int pooled_size = 0;     // number of elements of Output::pooled per text or per token, for pooling tasks
  bool normalise = false;  // whether vectors are scaled to length 1
  std::vector<std::string> labels{};  // names of the classes, for classify
  ScoreActivation score_activation = ScoreActivation::none;

  // A separate head for another task, with one result for each token. If the first token of a text
  // has the id left_out_first, it gets no result; the same holds for the last token and
  // left_out_last. -1: every token gets a result.
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
  // Returns 0 for the default head. For a head in token_heads, returns its index plus 1.
  int head_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? static_cast<int>(head - token_heads.data()) + 1 : 0;
  }
  // Returns whether requests can have this task. An embedding model also supports token_embed, and a
  // classifier of texts also supports token_classify.
  bool does(Task of) const {
    return of == default_task || token_head(of) != nullptr ||
           (of == Task::token_embed && default_task == Task::embed) ||
           (of == Task::token_classify && default_task == Task::classify);
  }
  // Returns the number of elements of Output::pooled for this task, per text or per token.
  int size_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? head->size : pooled_size;
  }
};

struct EngineInfo {
  int index = 0;    // index of the client's first engine; a label of metrics
  int engines = 1;  // number of engines of the client, with consecutive indices
  std::string architecture{};
  std::string device{};  // device name with its instruction set; "": unknown
  std::int64_t weight_bytes = 0;
  struct KvCache {
    std::int64_t bytes = 0;
    bool outlives_engine = false;  // whether it stays in memory without the engine's process
  };
  KvCache cache{};
  int num_blocks = 0;
  int block_size = 0;  // tokens per block

  // Limits on requests. submit() checks them; clients can check them earlier.
  int vocab_size = 0;
  int max_model_len = 0;  // maximum number of tokens of prompt plus output, or of a text for pooling
  int max_num_seqs = 0;
  int max_queued = 4096;
  int max_logprobs = 20;    // maximum number of logprobs per token; -1: the complete vocabulary
  bool priorities = false;  // whether Request::priority has an effect
  int max_loras = 0;        // maximum number of LoRA adapters in memory; 0: LoRA is disabled
  int prompt_embeds = 0;    // width of prompt embeddings; 0: the engine does not accept embeddings

  // How images become prompt tokens. `token_id` is the id of all image tokens. With `size` above 0,
  // an image is a square of `size` pixels and takes `tokens` tokens. With `size` 0, an image is a
  // grid of at most `tokens` tokens, each of unit x unit pixels. With `tokens` 0, the model accepts
  // no images.
  struct ImageRule {
    int size = 0;
    int tokens = 0;
    int token_id = 0;
    int unit = 0;
    bool row_breaks = false;  // see MediaPart::row_breaks
    int marks = 0;            // tokens of an image before and after those of its grid
    // whether an image's tokens attend to each other, so that one step must compute them all
    bool whole = false;
    bool whole_prompts = false;  // the same for all tokens of a prompt, with or without images
    // whether an image consists of several squares of `size` pixels (MediaPart::Tiles)
    bool tiled = false;
    // Only with `tiled`. If not 0, the complete image comes last: its tokens follow the tokens of the tiles
    // and a separator token, and one more token follows each row. Tiles can then contain empty patches, and a
    // token covers whole_last x whole_last patches.
    int whole_last = 0;
    // Maximum number of frames in one MediaPart of a video; 0: no videos. Video tokens have the id
    // video_token_id.
    int frames = 0;
    int video_token_id = 0;
    float time_steps = 0;  // steps on the time axis per second; 0: one step per MediaPart
  };
  ImageRule image{};

  // How sounds become encoder input. A sound is a log-mel spectrogram f32 [mels, frames]; with `mels` 0, the
  // model accepts no sounds. With `tokens` above 0, a sound takes at most `tokens` prompt tokens with the id
  // `token_id`, one for each `frames / tokens` frames. With `tokens` 0, the model reads one sound by cross
  // attention, and the engine has `slots` slots for encoded sounds. With `whole`, a sound of more than
  // `frames` frames is cut into windows of `frames` frames, and each window takes `tokens` tokens.
  struct SoundRule {
    int mels = 0;
    int frames = 0;
    int slots = 0;
    int tokens = 0;
    int token_id = 0;
    bool whole = false;
    bool trimmed = false;  // with `whole`: the prompt has no tokens for the silence after a sound
  };
  SoundRule sound{};

  // For encoder-decoder models, whose encoder reads the prompt (Vaswani et al., "Attention Is All
  // You Need", 2017). The output begins with the tokens `begin`. The prompt has at most `tokens`
  // tokens; 0: the model has no such encoder. The engine has `slots` slots for encoded prompts.
  struct SourceRule {
    int tokens = 0;
    int slots = 0;
    std::vector<int> begin{};
  };
  SourceRule source{};
  int slots() const { return sound.slots > 0 ? sound.slots : source.slots; }

  TaskRules tasks{};
};

}  // namespace octavo
