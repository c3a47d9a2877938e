// Streams one answer of the demo model, or of the model in the argument.
//   npm install && OCTAVO_LIBRARY=../../../build/release/liboctavo.so.1 node stream.js
import koffi from 'koffi'
import { promisify } from 'node:util'

const library = koffi.load(process.env.OCTAVO_LIBRARY ?? 'liboctavo.so.1')
const Failure = koffi.struct('octavo_error', { code: 'int32', field: koffi.array('char', 64), message: koffi.array('char', 1024) })
const Outputs = koffi.struct('octavo_outputs', { items: 'void *', count: 'size_t' })
// All fields of octavo.h, since an array needs the size of the structure.
const Output = koffi.struct('octavo_output', {
  request: 'uint64', index: 'int32', finish: 'int32', last: 'int32',
  text: 'void *', text_bytes: 'size_t', tokens: 'void *', token_count: 'size_t', logprobs: 'void *',
  stop_text: 'void *', stop_text_bytes: 'size_t', stop_token: 'int32', error: 'void *', error_bytes: 'size_t',
  prompt_tokens: 'void *', prompt_token_count: 'size_t', prompt_logprobs: 'void *', prompt_logprob_count: 'size_t',
  cached_tokens: 'int32', scheduled_s: 'double', first_token_s: 'double', last_token_s: 'double',
})
const create = library.func('int32 octavo_create(const char *options, _Out_ void **engine, _Out_ octavo_error *error)')
const submit = library.func(
  'int32 octavo_submit(void *engine, uint64 request, const char *body, size_t bytes, int32 mode, _Out_ octavo_error *error)')
const wait = library.func('octavo_outputs *octavo_wait(void *engine, int32 timeout_ms)')
const free = library.func('void octavo_outputs_free(octavo_outputs *outputs)')
const destroy = library.func('void octavo_destroy(void *engine)')
const DELTA = 1

function check(code, failure) {
  if (code !== 0) throw new Error(`${failure.field} ${failure.message}`)
}

// Loads a model. Options are the flags of `octavo serve` with _ for -.
function open(options) {
  const engine = [null]
  const failure = {}
  check(create(JSON.stringify(options), engine, failure), failure)
  return engine[0]
}

// Yields the pieces of an answer. Waits for them on another thread.
async function* stream(engine, body) {
  const text = JSON.stringify(body)
  const failure = {}
  check(submit(engine, 1, text, Buffer.byteLength(text), DELTA, failure), failure)
  for (let last = false; !last; ) {
    const outputs = await promisify(wait.async)(engine, 1000)
    if (!outputs) continue // no output within the timeout
    const { items, count } = koffi.decode(outputs, Outputs)
    for (const output of koffi.decode(items, koffi.array(Output, Number(count)))) {
      if (output.text_bytes) yield koffi.decode(output.text, 'char', Number(output.text_bytes))
      last = output.last !== 0
    }
    free(outputs)
  }
}

const engine = open(process.argv[2] ? { model: process.argv[2] } : {})
for await (const text of stream(engine, { prompt: 'One rainy morning in', max_tokens: 32, temperature: 0 }))
  process.stdout.write(text)
process.stdout.write('\n')
destroy(engine)
