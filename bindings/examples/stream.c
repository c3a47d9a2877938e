/* Streams one answer of the demo model, or of the model in the argument.
 *   cc stream.c -I ../c -L ../../build/release -loctavo -o stream && LD_LIBRARY_PATH=../../build/release ./stream */
#include <stdio.h>
#include <string.h>

#include "octavo.h"

int main(int argc, char **argv) {
  char options[4096] = "{}";
  const char *body = "{\"prompt\": \"One rainy morning in\", \"max_tokens\": 32, \"temperature\": 0}";
  octavo_error error;
  octavo_engine *engine;
  int last = 0;
  if (argc > 1) snprintf(options, sizeof options, "{\"model\": \"%s\"}", argv[1]);
  if (octavo_create(options, &engine, &error) != OCTAVO_OK ||
      octavo_submit(engine, 1, body, strlen(body), OCTAVO_DELTA, &error) != OCTAVO_OK) {
    fprintf(stderr, "%s %s\n", error.field, error.message);
    return 1;
  }
  while (!last) {
    octavo_outputs *outputs = octavo_wait(engine, 1000);
    size_t i;
    if (outputs == NULL) continue; /* no output within the timeout */
    for (i = 0; i < outputs->count; ++i) {
      fwrite(outputs->items[i].text, 1, outputs->items[i].text_bytes, stdout);
      last = outputs->items[i].last;
    }
    fflush(stdout);
    octavo_outputs_free(outputs);
  }
  putchar('\n');
  octavo_destroy(engine);
  return 0;
}
