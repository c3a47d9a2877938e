/* Octavo's engine from any language: load a model, submit requests, wait for their outputs.
 *
 *   octavo_error error;
 *   octavo_engine *engine;
 *   if (octavo_create("{\"model\": \"/models/qwen\"}", &engine, &error)) return fail(error.message);
 *   octavo_submit(engine, 1, body, strlen(body), OCTAVO_FINAL, &error);
 *   for (octavo_outputs *outputs; (outputs = octavo_wait(engine, 1000)); octavo_outputs_free(outputs)) ...
 *   octavo_destroy(engine);
 *
 * No function throws, exits or calls back; all may be called from any thread unless it says otherwise. Texts are UTF-8
 * with their length beside them, not ended by a NUL, unless it says otherwise. As long as octavo_abi() returns the same
 * number, functions are only ever added, octavo_stats only grows at its end, and other structures stay as they are.
 */
#ifndef OCTAVO_H
#define OCTAVO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OCTAVO_API __attribute__((visibility("default")))
#else
#define OCTAVO_API
#endif

#define OCTAVO_ABI 1

/* The number that OCTAVO_ABI had when the library was compiled. */
OCTAVO_API int32_t octavo_abi(void);
/* "0.1.0", ended by a NUL. */
OCTAVO_API const char *octavo_version(void);

typedef enum {
  OCTAVO_OK = 0,
  OCTAVO_INVALID_ARGUMENT = 1,   /* the caller's input is wrong */
  OCTAVO_NOT_FOUND = 2,          /* a file or model that does not exist */
  OCTAVO_UNSUPPORTED = 3,        /* well-formed, but something Octavo does not do */
  OCTAVO_CORRUPT = 4,            /* a file that contradicts itself */
  OCTAVO_IO = 5,                 /* the operating system refused */
  OCTAVO_RESOURCE_EXHAUSTED = 6, /* a limit was reached: wait for outputs, then try again */
  OCTAVO_UNAVAILABLE = 7,        /* the engine has failed or is being stopped */
  OCTAVO_INTERNAL = 8            /* a failure that is not the caller's fault */
} octavo_code;

/* What went wrong; filled in by functions that return something other than OCTAVO_OK. */
typedef struct {
  int32_t code;       /* octavo_code */
  char field[64];     /* the input field at fault, "" when there is none; ended by a NUL */
  char message[1024]; /* one line, ended by a NUL; longer ones are cut */
} octavo_error;

typedef struct octavo_engine octavo_engine;

/* Loads a model and starts its engine; takes as long as reading the weights. options: a JSON object, ended by a NUL, of
 * the flags of `octavo serve` with _ for -: {"model": "..", "max_model_len": 4096, "enable_prefix_caching": false}. Without
 * "model" the demo model. `error` may be NULL. */
OCTAVO_API int32_t octavo_create(const char *options, octavo_engine **engine, octavo_error *error);

/* Ends what is running, frees everything. No other call for this engine may be under way. NULL is allowed. */
OCTAVO_API void octavo_destroy(octavo_engine *engine);

/* A JSON object about the engine: model, max_model_len, vocab_size, num_blocks, default_sampling_params. Lives as long as
 * the engine; ended by a NUL. */
OCTAVO_API const char *octavo_info(const octavo_engine *engine);

typedef enum {
  OCTAVO_FINAL = 0, /* one output for each answer, when it has ended */
  OCTAVO_DELTA = 1  /* an output whenever there is more of an answer */
} octavo_mode;

/* Submits a body of /v1/chat/completions (it has "messages") or of /v1/completions with one prompt, a text or token ids;
 * max_tokens beyond the context is cut to what fits. `request`: the caller's number for it, which its outputs will bear; no
 * unfinished request may have the same. */
OCTAVO_API int32_t octavo_submit(octavo_engine *engine, uint64_t request, const char *body, size_t body_bytes,
                                 octavo_mode mode, octavo_error *error);

/* Submits a body of a route for models that read texts: "/v1/embeddings", "/pooling", "/classify", "/score" or "/rerank",
 * ended by a NUL. Its one output has the route's reply, JSON, as its text, and the prompt's tokens where the body has one
 * text. */
OCTAVO_API int32_t octavo_submit_texts(octavo_engine *engine, uint64_t request, const char *route, const char *body,
                                       size_t body_bytes, octavo_error *error);

/* Ends a request soon; its answers still end with an output. Unknown and finished requests are ignored. */
OCTAVO_API void octavo_abort(octavo_engine *engine, uint64_t request);

typedef enum {
  OCTAVO_UNFINISHED = 0,
  OCTAVO_STOP = 1,       /* an end-of-text or stop token, or a stop string */
  OCTAVO_LENGTH = 2,     /* max_tokens or the context is used up */
  OCTAVO_REPETITION = 3, /* repetition_detection fired */
  OCTAVO_ABORT = 4,
  OCTAVO_ERROR = 5       /* see octavo_output.error */
} octavo_finish;

typedef struct {
  int32_t token;
  float logprob; /* natural logarithm */
} octavo_candidate;

/* The log-probabilities of one position. */
typedef struct {
  int32_t token; /* that stands there */
  float logprob;
  int32_t rank;                /* 1: the most likely of all */
  const octavo_candidate *top; /* the most likely first */
  size_t top_count;
} octavo_logprobs;

/* All of an answer (OCTAVO_FINAL) or what is new of it (OCTAVO_DELTA). */
typedef struct {
  uint64_t request;
  int32_t index;  /* which of the request's n answers */
  int32_t finish; /* octavo_finish */
  int32_t last;   /* 1: nothing more comes for this request */
  const char *text;
  size_t text_bytes;
  const int32_t *tokens;
  size_t token_count;
  const octavo_logprobs *logprobs; /* one for each token when asked for, else NULL */
  const char *stop_text;           /* the stop string that ended the answer, else NULL */
  size_t stop_text_bytes;
  int32_t stop_token; /* of stop_token_ids, that ended the answer; -1: none */
  const char *error;  /* with OCTAVO_ERROR, else NULL */
  size_t error_bytes;
  /* About the prompt, in an answer's first output (so in every one of OCTAVO_FINAL), else NULL and 0. */
  const int32_t *prompt_tokens;
  size_t prompt_token_count;
  const octavo_logprobs *prompt_logprobs; /* of the prompt's second token and those behind it, when asked for */
  size_t prompt_logprob_count;
  int32_t cached_tokens; /* prompt tokens found in the prefix cache */
  /* Seconds since the request arrived, in an answer's last output; 0: it never came to that. */
  double scheduled_s, first_token_s, last_token_s;
} octavo_output;

typedef struct {
  const octavo_output *items;
  size_t count;
} octavo_outputs;

/* All outputs that have come, at least one; waits for it, at most timeout_ms. NULL: none came. One caller at a time gets
 * outputs, others wait. What it returns is the caller's until octavo_outputs_free. */
OCTAVO_API octavo_outputs *octavo_wait(octavo_engine *engine, int32_t timeout_ms);
OCTAVO_API void octavo_outputs_free(octavo_outputs *outputs);

/* Token ids of a text. Writes up to `capacity` of them; `count` gets how many there are. */
OCTAVO_API int32_t octavo_encode(const octavo_engine *engine, const char *text, size_t text_bytes,
                                 int32_t add_special_tokens, int32_t *tokens, size_t capacity, size_t *count,
                                 octavo_error *error);
/* Text of token ids. Writes up to `capacity` bytes; `text_bytes` gets how many there are. */
OCTAVO_API int32_t octavo_decode(const octavo_engine *engine, const int32_t *tokens, size_t count,
                                 int32_t skip_special_tokens, char *text, size_t capacity, size_t *text_bytes,
                                 octavo_error *error);

/* Gauges of this moment, counters since the start. */
typedef struct {
  int32_t healthy; /* 0: the engine has failed for good */
  int32_t running, waiting;
  int32_t blocks_total, blocks_used, blocks_cached; /* of the KV cache */
  int64_t prompt_tokens, prompt_tokens_cached, generation_tokens;
  int64_t prefix_queries, prefix_hits; /* tokens */
  int64_t preemptions;
  int32_t sleep_level; /* 0: awake; see octavo_sleep */
} octavo_stats;

/* Fills in the first `bytes` bytes, sizeof(octavo_stats) as the caller knows it. */
OCTAVO_API void octavo_get_stats(const octavo_engine *engine, octavo_stats *stats, size_t bytes);

/* What `octavo serve` tells on /metrics of its engine, in Prometheus' text format. Writes up to `capacity` bytes;
 * `text_bytes` gets how many there are, which may be more at the next call. */
OCTAVO_API int32_t octavo_metrics(const octavo_engine *engine, char *text, size_t capacity, size_t *text_bytes,
                                  octavo_error *error);

/* Forgets every cached prefix that no running request uses. */
OCTAVO_API void octavo_reset_prefix_cache(octavo_engine *engine);

/* Gives memory back until octavo_wake_up: level 1 that of the KV cache, level 2 that of the weights, too, which are then
 * read again. New requests are refused at once; returns when the last one has ended. For engines created with
 * "enable_sleep_mode": true. */
OCTAVO_API int32_t octavo_sleep(octavo_engine *engine, int32_t level, octavo_error *error);
/* Returns when the engine takes requests again; at once where it is awake. */
OCTAVO_API int32_t octavo_wake_up(octavo_engine *engine, octavo_error *error);

/* Begins a file that says what each step of the engine takes, in the trace event format (Perfetto and
 * chrome://tracing open it), in the folder of the engine's option "profiler_config": {"profiler": "torch",
 * "torch_profiler_dir": ".."}. `session`: JSON with "profile_prefix", "delay_iterations" and
 * "max_iterations", all optional; ended by a NUL. */
OCTAVO_API int32_t octavo_start_profile(octavo_engine* engine, const char* session, octavo_error* error);
/* Ends the file. */
OCTAVO_API int32_t octavo_stop_profile(octavo_engine* engine, octavo_error* error);

#ifdef __cplusplus
}
#endif

#endif
