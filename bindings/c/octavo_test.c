/* Tests the C ABI from C with the demo model. Run it in the repository root. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "octavo.h"

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static octavo_engine *engine;
static octavo_error error;

static uint64_t submit(const char *body, octavo_mode mode) {
  static uint64_t request = 0;
  int32_t code = octavo_submit(engine, ++request, body, strlen(body), mode, &error);
  if (code != OCTAVO_OK) fprintf(stderr, "%s: %s\n", error.field, error.message);
  EXPECT(code == OCTAVO_OK);
  return request;
}

/* Joins the texts of a request with one answer, and counts its outputs. */
static int32_t read_all(uint64_t request, char *text, int *outputs, int *tokens) {
  int32_t finish = OCTAVO_UNFINISHED;
  size_t bytes = 0;
  *outputs = *tokens = 0;
  while (finish == OCTAVO_UNFINISHED) {
    octavo_outputs *outputs_now = octavo_wait(engine, 60000);
    size_t i;
    EXPECT(outputs_now != NULL);
    for (i = 0; i < outputs_now->count; ++i) {
      const octavo_output *o = &outputs_now->items[i];
      EXPECT(o->request == request && o->index == 0);
      EXPECT((o->prompt_tokens != NULL) == (*outputs == 0));
      EXPECT(o->last == (o->finish != OCTAVO_UNFINISHED));
      memcpy(text + bytes, o->text, o->text_bytes);
      bytes += o->text_bytes;
      *tokens += (int)o->token_count;
      ++*outputs;
      finish = o->finish;
    }
    octavo_outputs_free(outputs_now);
  }
  text[bytes] = '\0';
  return finish;
}

static void test_final_and_delta_agree(void) {
  const char *body = "{\"prompt\": \"Once upon a time\", \"max_tokens\": 12, \"temperature\": 0}";
  char whole[4096], joined[4096];
  int outputs, tokens;
  EXPECT(read_all(submit(body, OCTAVO_FINAL), whole, &outputs, &tokens) == OCTAVO_LENGTH);
  EXPECT(outputs == 1 && tokens == 12 && strlen(whole) > 0);
  EXPECT(read_all(submit(body, OCTAVO_DELTA), joined, &outputs, &tokens) == OCTAVO_LENGTH);
  EXPECT(outputs > 1 && tokens == 12);
  EXPECT(strcmp(whole, joined) == 0);
}

static void test_logprobs(void) {
  octavo_outputs *outputs_now;
  submit("{\"prompt\": \"Once upon a time\", \"max_tokens\": 2, \"temperature\": 0, \"logprobs\": 3, \"prompt_logprobs\": 1, \"n\": 1}", OCTAVO_FINAL);
  outputs_now = octavo_wait(engine, 60000);
  EXPECT(outputs_now != NULL && outputs_now->count == 1 && outputs_now->items[0].token_count == 2);
  EXPECT(outputs_now->items[0].logprobs != NULL && outputs_now->items[0].logprobs[1].top_count == 3);
  EXPECT(outputs_now->items[0].logprobs[0].token == outputs_now->items[0].tokens[0]);
  EXPECT(outputs_now->items[0].prompt_logprob_count == outputs_now->items[0].prompt_token_count - 1);
  octavo_outputs_free(outputs_now);
}

/* A generating model refuses pooling requests. */
static void test_texts_are_for_other_models(void) {
  const char *body = "{\"input\": \"x\"}";
  EXPECT(octavo_submit_texts(engine, 98, "/v1/embeddings", body, strlen(body), &error) == OCTAVO_NOT_FOUND);
  EXPECT(strcmp(error.field, "model") == 0);
  EXPECT(octavo_submit_texts(engine, 98, "/v1/chat", body, strlen(body), &error) == OCTAVO_INVALID_ARGUMENT);
  EXPECT(strcmp(error.field, "route") == 0);
}

static void test_abort(void) {
  char text[1 << 16];
  int outputs, tokens;
  uint64_t request = submit("{\"prompt\": \"Once\", \"max_tokens\": 100000, \"ignore_eos\": true}", OCTAVO_FINAL);
  EXPECT(octavo_submit(engine, request, "{\"prompt\": \"x\"}", 15, OCTAVO_FINAL, &error) == OCTAVO_INVALID_ARGUMENT);
  octavo_abort(engine, request);
  octavo_abort(engine, request + 1000);
  EXPECT(read_all(request, text, &outputs, &tokens) == OCTAVO_ABORT);
}

static void test_mistakes_are_named(void) {
  octavo_engine *none = NULL;
  const char *body = "{\"prompt\": \"x\", \"temperature\": -1}";
  EXPECT(octavo_submit(engine, 99, body, strlen(body), OCTAVO_FINAL, &error) == OCTAVO_INVALID_ARGUMENT);
  EXPECT(strcmp(error.field, "temperature") == 0 && strlen(error.message) > 0);
  EXPECT(octavo_submit(engine, 99, "{", 1, OCTAVO_FINAL, NULL) == OCTAVO_INVALID_ARGUMENT);
  EXPECT(octavo_create("{\"no_such_option\": 1}", &none, &error) == OCTAVO_INVALID_ARGUMENT);
  EXPECT(strcmp(error.field, "no_such_option") == 0);
  EXPECT(octavo_create("{\"model\": \"no/such/folder\"}", &none, &error) != OCTAVO_OK);
  EXPECT(none == NULL);
  EXPECT(octavo_wait(engine, 0) == NULL);
}

static void test_tokens(void) {
  int32_t ids[64];
  char text[64];
  size_t count = 0, bytes = 0;
  EXPECT(octavo_encode(engine, "Once upon", 9, 0, ids, 64, &count, &error) == OCTAVO_OK && count > 0);
  EXPECT(octavo_decode(engine, ids, count, 1, text, 64, &bytes, &error) == OCTAVO_OK);
  EXPECT(bytes == 9 && memcmp(text, "Once upon", 9) == 0);
  EXPECT(octavo_decode(engine, ids, count, 1, text, 0, &bytes, &error) == OCTAVO_OK && bytes == 9);
}

static void test_a_profile_needs_its_folder(void) {
  EXPECT(octavo_start_profile(engine, "{}", &error) == OCTAVO_INVALID_ARGUMENT);
  EXPECT(strcmp(error.field, "profiler_config") == 0);
  EXPECT(octavo_stop_profile(engine, &error) == OCTAVO_INVALID_ARGUMENT);
}

int main(void) {
  octavo_stats stats;
  EXPECT(octavo_abi() == OCTAVO_ABI);
  if (octavo_create("{\"model\": \"models/demo\", \"kv_cache_memory_bytes\": \"64M\"}", &engine, &error) != OCTAVO_OK) {
    fprintf(stderr, "%s: %s\n", error.field, error.message);
    return 1;
  }
  EXPECT(strstr(octavo_info(engine), "\"max_model_len\":") != NULL);
  test_final_and_delta_agree();
  test_logprobs();
  test_texts_are_for_other_models();
  test_abort();
  test_mistakes_are_named();
  test_tokens();
  test_a_profile_needs_its_folder();
  octavo_get_stats(engine, &stats, sizeof stats);
  EXPECT(stats.healthy && stats.generation_tokens >= 26);
  octavo_destroy(engine);
  octavo_destroy(NULL);
  return 0;
}
