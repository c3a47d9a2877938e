// Anthropic's client for Node: messages, streams, tools, tokens counted, mistakes.
import assert from "node:assert/strict";
import Anthropic, { BadRequestError } from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.WRITES, apiKey: "none", maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const body = { model, max_tokens: 8, temperature: 0, messages: [{ role: "user", content: "Tell a story." }] };
const whole = await client.messages.create(body);
assert.equal(whole.stop_reason, "max_tokens");
let text = "";
for await (const event of await client.messages.create({ ...body, stream: true }))
  if (event.type === "content_block_delta") text += event.delta.text;
assert.equal(text, whole.content[0].text);
const final = await client.messages.stream(body).finalMessage();
assert.deepEqual(final.content, whole.content);
assert.deepEqual(final.usage.output_tokens, whole.usage.output_tokens);
assert.equal((await client.messages.countTokens({ model, messages: body.messages })).input_tokens, whole.usage.input_tokens);
const tools = [{ name: "look", input_schema: { type: "object", properties: { at: { enum: ["sky", "sea"] } }, required: ["at"], additionalProperties: false } }];
const asked = await client.messages.create({ ...body, max_tokens: 200, tools, tool_choice: { type: "any" } });
const use = asked.content.find((block) => block.type === "tool_use");
assert.ok(["sky", "sea"].includes(use.input.at));
const streamed = await client.messages.stream({ ...body, max_tokens: 200, tools, tool_choice: { type: "tool", name: "look" } }).finalMessage();
assert.equal(streamed.stop_reason, "tool_use");
await client.messages.create({ ...body, tools, messages: [...body.messages, { role: "assistant", content: asked.content },
  { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "blue" }] }] });
await assert.rejects(client.messages.create({ ...body, max_tokens: 0 }), BadRequestError);
console.log("every answer is as the client wants it");
