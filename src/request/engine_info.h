// Properties of an engine's model and its limits on requests. A client gets them when it starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "request/pooling.h"

namespace octavo {

// Tasks that the model supports.
struct TaskRules {
  Task default_task = Task::generate;
  // fields for tasks other than generate
  int pooled_size = 0;                // number of elements of Output::pooled, per text or per token
  bool normalise = false;             // whether vectors are scaled to length 1
  std::vector<std::string> labels{};  // names of the scores
  ScoreActivation score_activation = ScoreActivation::none;

  // A separate head that gives a result for each token, for another task. The first token of a text has no
  // result if its id is left_out_first, and the last one if its id is left_out_last; -1: all tokens have
  // results.
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
  // Returns the index of the head for a task: 0 for the default head, otherwise the index in token_heads plus
  // 1.
  int head_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? static_cast<int>(head - token_heads.data()) + 1 : 0;
  }
  // Returns true if requests can have this task. An embedding model also embeds tokens.
  bool does(Task of) const {
    return of == default_task || token_head(of) != nullptr ||
           (of == Task::token_embed && default_task == Task::embed);
  }
  // Returns the number of elements in Output::pooled for this task, per text or per token.
  int size_for(Task of) const {
    const TokenHead* head = token_head(of);
    return head != nullptr ? head->size : pooled_size;
  }
};

struct EngineInfo {
  int index = 0;               // index of the engine, or of the client's first engine; a label of metrics
  int engines = 1;             // number of engines of the client; their indices are consecutive
  std::string architecture{};
  std::string device{};  // name of the device, with its instruction set; "" if it is unknown
  std::int64_t weight_bytes = 0;
  std::int64_t cache_bytes = 0;
  int num_blocks = 0;
  int block_size = 0;  // tokens per block

  // Limits on a request. submit() checks them; a client can check them earlier.
  int vocab_size = 0;
  int max_model_len = 0;  // maximum number of tokens of prompt and output, or of a pooled text
  int max_num_seqs = 0;
  int max_queued = 4096;
  int max_logprobs = 20;    // maximum number of logprobs per request; -1: complete vocabulary
  bool priorities = false;  // whether Request::priority has an effect
  int max_loras = 0;        // maximum number of LoRA adapters in memory; 0: LoRA is disabled
  int prompt_embeds = 0;  // number of elements in a row of prompt embeddings; 0: embeddings are not accepted

  // Rule for images in a prompt. If `size` is above 0, an image is a square of `size` pixels and takes
  // `tokens` tokens. If `size` is 0, an image is a grid of at most `tokens` tokens, each of unit x unit
  // pixels. Each of these tokens has the id `token_id`. If `tokens` is 0, the model accepts no images.
  struct ImageRule {
    int size = 0;
    int tokens = 0;
    int token_id = 0;
    int unit = 0;
    bool row_breaks = false;  // see MediaPart::row_breaks
    bool whole = false;  // whether the tokens of an image attend to each other, so that one step must compute
                         // all of them
    bool tiled = false;  // whether an image consists of several such squares (MediaPart::Tiles)
    // Only with `tiled`; if not 0, number of patches along a token's side. The tokens of the tiles and one
    // separator token come first, then the tokens of the complete image, with one more token after each row.
    // Patches of the tiles can be empty.
    int whole_last = 0;
    // Maximum number of frames in a part of a video; its tokens have the id video_token_id. 0: no videos.
    int frames = 0;
    int video_token_id = 0;
    float time_steps = 0;  // steps on the time axis per second; 0: one step per part
  };
  ImageRule image{};

  // Rule for sounds. A sound is a log-mel spectrogram f32 [mels, frames]. If `mels` is 0, the model accepts
  // no sound. A sound in a prompt takes at most `tokens` tokens, one per `frames / tokens` frames; each has
  // the id `token_id`. If `tokens` is 0, the model reads one sound by cross attention instead of in the
  // prompt, and the engine has `places` slots for sounds. With `whole`, a longer sound is cut into windows of
  // `frames` frames, each of which takes `tokens` tokens.
  struct SoundRule {
    int mels = 0;
    int frames = 0;
    int places = 0;
    int tokens = 0;
    int token_id = 0;
    bool whole = false;
  };
  SoundRule sound{};

  // Rule for models whose encoder reads the prompt (Vaswani et al., "Attention Is All You Need", 2017). The
  // output begins with the tokens `begin`. tokens: maximum number of prompt tokens; 0: the model has no such
  // encoder. The engine has `places` slots for prompts.
  struct SourceRule {
    int tokens = 0;
    int places = 0;
    std::vector<int> begin{};
  };
  SourceRule source{};
  int places() const { return sound.places > 0 ? sound.places : source.places; }

  TaskRules tasks{};
};

}  // namespace octavo
