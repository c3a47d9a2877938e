/* Octavo's engine from any language: load a model, submit requests, wait for their outputs.
 *
 *   octavo_error error;
 *   octavo_engine *engine;
 *   if (octavo_create("{\"model\": \"/models/qwen\"}", &engine, &error)) return fail(error.message);
 *   octavo_submit(engine, 1, body, strlen(body), OCTAVO_FINAL, &error);
 *   for (octavo_outputs *outputs; (outputs = octavo_wait(engine, 1000)); octavo_outputs_free(outputs)) ...
 *   octavo_destroy(engine);
 *
 * No function throws, exits or calls back. All are thread-safe, unless the comment says otherwise. Texts are
 * UTF-8 with an explicit length and no NUL at the end, unless the comment says otherwise. While octavo_abi()
 * returns the same number, only functions are added; octavo_stats grows only at its end; other structures do
 * not change.
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

/* Returns OCTAVO_ABI of the compiled library. */
OCTAVO_API int32_t octavo_abi(void);
/* Returns the version, such as "0.1.0", NUL-terminated. */
OCTAVO_API const char *octavo_version(void);

typedef enum {
  OCTAVO_OK = 0,
  OCTAVO_INVALID_ARGUMENT = 1,   /* the caller's input is wrong */
  OCTAVO_NOT_FOUND = 2,          /* a file, a model or a route of this model does not exist */
  OCTAVO_UNSUPPORTED = 3,        /* the input is valid, but Octavo does not support it */
  OCTAVO_CORRUPT = 4,            /* a file is damaged */
  OCTAVO_IO = 5,                 /* the operating system reported an error */
  OCTAVO_RESOURCE_EXHAUSTED = 6, /* a limit was reached: wait for outputs, then retry */
  OCTAVO_UNAVAILABLE = 7,        /* the engine has failed or is being stopped */
  OCTAVO_INTERNAL = 8            /* a failure that is not the caller's fault */
} octavo_code;

/* Description of a failure; set by functions that return a code other than OCTAVO_OK. */
typedef struct {
  int32_t code;       /* octavo_code */
  char field[64];     /* the invalid input field, "" if there is none; NUL-terminated */
  char message[1024]; /* one line, NUL-terminated, truncated if longer */
} octavo_error;

typedef struct octavo_engine octavo_engine;

/* Loads a model and starts its engine; returns when the weights are loaded. options: NUL-terminated JSON
 * object with the flags of `octavo serve`, with _ for -: {"model": "..", "max_model_len": 4096,
 * "enable_prefix_caching": false}. Without "model" it loads the demo model. `error` may be NULL. */
OCTAVO_API int32_t octavo_create(const char *options, octavo_engine **engine, octavo_error *error);

/* Aborts all requests and frees the engine. No other call may use the engine at the same time. `engine` may
 * be NULL. */
OCTAVO_API void octavo_destroy(octavo_engine *engine);

/* Returns a JSON object about the engine: model, max_model_len, vocab_size, num_blocks,
 * default_sampling_params. NUL-terminated; valid until octavo_destroy. */
OCTAVO_API const char *octavo_info(const octavo_engine *engine);

typedef enum {
  OCTAVO_FINAL = 0, /* one output for each choice, at its end */
  OCTAVO_DELTA = 1  /* an output for each new piece of a choice */
} octavo_mode;

/* Submits a body of /v1/chat/completions (it has "messages") or of /v1/completions with one prompt, a text or
 * token ids; limits max_tokens to the context. request: a number from the caller, which is in the
 * request's outputs; unique among unfinished requests. */
OCTAVO_API int32_t octavo_submit(octavo_engine *engine, uint64_t request, const char *body, size_t body_bytes,
                                 octavo_mode mode, octavo_error *error);

/* Submits a body of a pooling route: "/v1/embeddings", "/pooling", "/classify", "/score" or "/rerank",
 * NUL-terminated. Its one output has the route's JSON reply as its text, and the prompt's tokens if the body
 * has one text. */
OCTAVO_API int32_t octavo_submit_texts(octavo_engine *engine, uint64_t request, const char *route, const char *body,
                                       size_t body_bytes, octavo_error *error);

/* Aborts a request; each of its choices still ends with an output. Ignores unknown and finished requests. */
OCTAVO_API void octavo_abort(octavo_engine *engine, uint64_t request);

typedef enum {
  OCTAVO_UNFINISHED = 0,
  OCTAVO_STOP = 1,       /* an end-of-text or stop token, or a stop string */
  OCTAVO_LENGTH = 2,     /* max_tokens or the maximum context length was reached */
  OCTAVO_REPETITION = 3, /* repetition_detection found a repetition */
  OCTAVO_ABORT = 4,
  OCTAVO_ERROR = 5 /* see octavo_output.error */
} octavo_finish;

typedef struct {
  int32_t token;
  float logprob; /* natural logarithm */
} octavo_candidate;

/* The log-probabilities of one position. */
typedef struct {
  int32_t token; /* the token at this position */
  float logprob;
  int32_t rank;                /* 1: the most likely token */
  const octavo_candidate* top; /* most likely first */
  size_t top_count;
} octavo_logprobs;

/* A complete choice (OCTAVO_FINAL), or its new piece (OCTAVO_DELTA). */
typedef struct {
  uint64_t request;
  int32_t index;  /* index among the request's n choices */
  int32_t finish; /* octavo_finish */
  int32_t last;   /* 1: the request's last output */
  const char *text;
  size_t text_bytes;
  const int32_t *tokens;
  size_t token_count;
  const octavo_logprobs* logprobs; /* one for each token if requested, else NULL */
  const char* stop_text;           /* the stop string that ended the choice, else NULL */
  size_t stop_text_bytes;
  int32_t stop_token; /* the entry of stop_token_ids that ended the choice; -1: none */
  const char *error;  /* with OCTAVO_ERROR, else NULL */
  size_t error_bytes;
  /* The prompt: only in the first output of a choice (OCTAVO_FINAL: in every output); else NULL and 0. */
  const int32_t *prompt_tokens;
  size_t prompt_token_count;
  const octavo_logprobs* prompt_logprobs; /* from the prompt's second token on, if requested */
  size_t prompt_logprob_count;
  int32_t cached_tokens; /* prompt tokens found in the prefix cache */
  /* Times in seconds since the request's arrival, only in the last output of a choice; 0: did not happen. */
  double scheduled_s, first_token_s, last_token_s;
} octavo_output;

typedef struct {
  const octavo_output *items;
  size_t count;
} octavo_outputs;

/* Returns all new outputs. If there is no new output, waits at most timeout_ms for one, and returns NULL if
 * none arrives. Concurrent calls run one after the other. The caller must free the result with
 * octavo_outputs_free. */
OCTAVO_API octavo_outputs *octavo_wait(octavo_engine *engine, int32_t timeout_ms);
OCTAVO_API void octavo_outputs_free(octavo_outputs *outputs);
/* Returns details of the output at `index`: a JSON object with "kv_transfer_params" and "num_preemptions", if
 * the output has them; NULL if it has neither. Valid until octavo_outputs_free. */
OCTAVO_API const char* octavo_details(const octavo_outputs* outputs, size_t index);

/* Loads a LoRA adapter (PEFT's folder, or its name on the hub), or replaces the one of the same name.
 * Requests use the adapter with its name as "model". Requires "enable_lora": true in the options
 * of octavo_create. */
OCTAVO_API int32_t octavo_load_adapter(octavo_engine* engine, const char* name, const char* path,
                                       octavo_error* error);

/* Returns the options of octavo_create: a JSON list of {"name", "short", "switch", "many", "default",
 * "help"}. "short": vLLM's short flag; "switch": the value is true or false; "many": the value is a list.
 * Valid until the program ends. */
OCTAVO_API const char* octavo_options(void);

/* Tokenises a text. Writes at most `capacity` ids; `count` receives the total number. */
OCTAVO_API int32_t octavo_encode(const octavo_engine *engine, const char *text, size_t text_bytes,
                                 int32_t add_special_tokens, int32_t *tokens, size_t capacity, size_t *count,
                                 octavo_error *error);
/* Decodes token ids. Writes at most `capacity` bytes; `text_bytes` receives the total number. */
OCTAVO_API int32_t octavo_decode(const octavo_engine *engine, const int32_t *tokens, size_t count,
                                 int32_t skip_special_tokens, char *text, size_t capacity, size_t *text_bytes,
                                 octavo_error *error);

/* Current gauges, and counters since the start. */
typedef struct {
  int32_t healthy; /* 0: the engine has failed and cannot recover */
  int32_t running, waiting;
  int32_t blocks_total, blocks_used, blocks_cached; /* of the KV cache */
  int64_t prompt_tokens, prompt_tokens_cached, generation_tokens;
  int64_t prefix_queries, prefix_hits; /* tokens */
  int64_t preemptions;
  int32_t sleep_level; /* 0: awake; see octavo_sleep */
} octavo_stats;

/* Writes the first `bytes` bytes of the statistics to `stats`. Pass sizeof(octavo_stats). */
OCTAVO_API void octavo_get_stats(const octavo_engine *engine, octavo_stats *stats, size_t bytes);

/* Writes the engine's metrics as on /metrics of `octavo serve` (Prometheus text format): at most `capacity`
 * bytes. `text_bytes` receives the total number, which may grow until the next call. */
OCTAVO_API int32_t octavo_metrics(const octavo_engine *engine, char *text, size_t capacity, size_t *text_bytes,
                                  octavo_error *error);

/* Drops every cached prefix. Running requests keep their blocks. */
OCTAVO_API void octavo_reset_prefix_cache(octavo_engine *engine);

/* Frees memory until octavo_wake_up. Level 1 frees the KV cache; level 2 also frees the weights, which
 * octavo_wake_up loads again. Rejects new requests at once; returns after the last running request has ended.
 * Requires "enable_sleep_mode": true in the options of octavo_create. */
OCTAVO_API int32_t octavo_sleep(octavo_engine *engine, int32_t level, octavo_error *error);
/* Returns when the engine accepts requests again. Does nothing if it is awake. */
OCTAVO_API int32_t octavo_wake_up(octavo_engine *engine, octavo_error *error);

/* Makes new requests wait until octavo_resume. mode: "abort" aborts running requests, "wait" completes
 * them, "keep" interrupts them until octavo_resume. Returns when no request is being computed. */
OCTAVO_API int32_t octavo_pause(octavo_engine* engine, const char* mode, octavo_error* error);
OCTAVO_API void octavo_resume(octavo_engine* engine);

/* Begins a trace of the engine's steps, in the trace event format (for Perfetto and chrome://tracing): a file
 * in the folder of the engine's option "profiler_config": {"profiler": "torch", "torch_profiler_dir": ".."}.
 * `session`: JSON with "profile_prefix", "delay_iterations" and "max_iterations", all optional;
 * NUL-terminated. */
OCTAVO_API int32_t octavo_start_profile(octavo_engine* engine, const char* session, octavo_error* error);
/* Ends the trace. */
OCTAVO_API int32_t octavo_stop_profile(octavo_engine* engine, octavo_error* error);

#ifdef __cplusplus
}
#endif

#endif
