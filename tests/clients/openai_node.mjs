// OpenAI's client for Node, over every route that it covers and the server has.
import assert from "node:assert/strict";
import fs from "node:fs";
import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = (url) => new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const writes = client(process.env.WRITES), reads = client(process.env.READS), hears = client(process.env.HEARS);
const model = (await writes.models.list()).data[0].id;
assert.equal((await writes.models.retrieve(model)).id, model);
const messages = [{ role: "user", content: "Tell a story." }];
const greedy = { model, temperature: 0, seed: 1 };

// Chat: whole, in pieces, through the helper, as an object of a schema, with a call.
const chat = { ...greedy, messages, max_completion_tokens: 24 };
const whole = await writes.chat.completions.create({ ...chat, logprobs: true, top_logprobs: 2 });
assert.equal(whole.usage.completion_tokens, whole.choices[0].logprobs.content.length);
let text = "", usage;
for await (const chunk of await writes.chat.completions.create({ ...chat, stream: true, stream_options: { include_usage: true } })) {
  text += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(text, whole.choices[0].message.content);
assert.deepEqual(usage.completion_tokens, whole.usage.completion_tokens);
assert.equal(await writes.chat.completions.stream(chat).finalContent(), text);
const Place = z.object({ town: z.enum(["Rome", "Oslo"]), visits: z.number().int().min(0).max(9) });
const parsed = await writes.chat.completions.parse({ ...chat, max_completion_tokens: 200, response_format: zodResponseFormat(Place, "place") });
Place.parse(parsed.choices[0].message.parsed);
const look = { type: "function", function: { name: "look", parameters: { type: "object", properties: { at: { enum: ["sky", "sea"] } }, required: ["at"], additionalProperties: false }, strict: true } };
const called = await writes.chat.completions.create({ ...chat, max_completion_tokens: 200, tools: [look], tool_choice: "required" });
const call = called.choices[0].message.tool_calls[0];
assert.ok(["sky", "sea"].includes(JSON.parse(call.function.arguments).at));
const answered = await writes.chat.completions.create({ ...chat, tools: [look], messages: [...messages, called.choices[0].message, { role: "tool", tool_call_id: call.id, content: "blue" }] });
assert.ok(answered.usage.prompt_tokens > called.usage.prompt_tokens);

// Completions.
const completion = { ...greedy, prompt: "One rainy morning in", max_tokens: 16 };
const said = await writes.completions.create({ ...completion, logprobs: 1, echo: true });
assert.ok(said.choices[0].text.startsWith(completion.prompt));
let pieces = completion.prompt;
for await (const chunk of await writes.completions.create({ ...completion, stream: true })) pieces += chunk.choices[0]?.text ?? "";
assert.equal(pieces, said.choices[0].text);

// Responses.
const first = await writes.responses.create({ ...greedy, seed: undefined, input: "Tell a story.", max_output_tokens: 24 });
assert.equal((await writes.responses.retrieve(first.id)).output_text, first.output_text);
const events = [];
for await (const event of await writes.responses.create({ model, temperature: 0, input: "Tell a story.", max_output_tokens: 24, stream: true })) events.push(event);
assert.equal(events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join(""), first.output_text);
assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
assert.ok((await writes.responses.create({ model, previous_response_id: first.id, input: "Go on.", max_output_tokens: 4 })).id);
const place = await writes.responses.parse({ model, input: "Where?", max_output_tokens: 200, text: { format: zodTextFormat(Place, "place") } });
Place.parse(place.output_parsed);
const later = await writes.responses.create({ model, input: "Tell a long story.", background: true, max_output_tokens: 1500 });
await writes.responses.cancel(later.id);
await writes.responses.delete(first.id);
await assert.rejects(writes.responses.retrieve(first.id), NotFoundError);

// Vectors and sound, of models for them; mistakes.
const vectors = await reads.embeddings.create({ model: "reads", input: ["a", "b"], encoding_format: "float" });
assert.equal(vectors.data.length, 2);
const coded = await reads.embeddings.create({ model: "reads", input: ["a", "b"] });  // base64 on the wire
assert.ok(coded.data[1].embedding.every((x, i) => Math.abs(x - vectors.data[1].embedding[i]) < 1e-6));
for (const kind of ["transcriptions", "translations"]) {
  const heard = await hears.audio[kind].create({ model: "hears", file: fs.createReadStream(process.env.SOUND) });
  assert.equal(typeof heard.text, "string");
}
await assert.rejects(writes.chat.completions.create({ ...chat, temperature: 3 }), (e) => e instanceof BadRequestError && e.param === "temperature");
await assert.rejects(writes.models.retrieve("none"), NotFoundError);
console.log("every answer is as the client wants it");
