// Converts the form to a request body, and the server's chunks to an answer.
import { events } from './api'

export interface Settings {
  model: string // empty: the server's first
  max_tokens: string
  min_tokens: string
  temperature: string
  top_p: string
  top_k: string
  min_p: string
  presence_penalty: string
  frequency_penalty: string
  repetition_penalty: string
  seed: string
  stop: string // one a line
  logprobs: boolean
  schema: string // JSON Schema; empty: free text
  tools: string // JSON list; chat only
}

export const DEFAULTS: Settings = {
  model: '',
  max_tokens: '256',
  min_tokens: '',
  temperature: '',
  top_p: '',
  top_k: '',
  min_p: '',
  presence_penalty: '',
  frequency_penalty: '',
  repetition_penalty: '',
  seed: '',
  stop: '',
  logprobs: false,
  schema: '',
  tools: '',
}

export interface Candidate {
  text: string
  logprob: number
}

export interface Token extends Candidate {
  top: Candidate[]
}

export interface Answer {
  reasoning: string
  text: string
  tokens: Token[] // with log-probabilities, when asked for
  calls: { name: string; arguments: string }[]
  finish: string
  error: string
  promptTokens: number
  cachedTokens: number
  outputTokens: number
  firstMs: number // until the first chunk with something in it
  totalMs: number
}

export const emptyAnswer = (): Answer => ({
  reasoning: '',
  text: '',
  tokens: [],
  calls: [],
  finish: '',
  error: '',
  promptTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  firstMs: 0,
  totalMs: 0,
})

export interface Message {
  role: 'system' | 'user' | 'assistant'
  content: string | ({ type: 'image_url'; image_url: { url: string } } | { type: 'text'; text: string })[]
}

const TOP = 5
const NUMBERS = [
  'max_tokens',
  'min_tokens',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'seed',
] as const

function json(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`)
  }
}

// The body of /v1/chat/completions (of messages) or /v1/completions (of a text). Fields left empty are left out.
export function requestBody(prompt: Message[] | string, s: Settings): Record<string, unknown> {
  const chat = typeof prompt !== 'string'
  const body: Record<string, unknown> = chat ? { messages: prompt } : { prompt }
  if (s.model) body.model = s.model
  for (const name of NUMBERS) if (s[name].trim() !== '') body[name] = Number(s[name])
  const stop = s.stop.split('\n').filter((line) => line !== '')
  if (stop.length) body.stop = stop
  if (s.logprobs && chat) Object.assign(body, { logprobs: true, top_logprobs: TOP })
  if (s.logprobs && !chat) body.logprobs = TOP
  if (s.schema.trim()) body.structured_outputs = { json: json(s.schema, 'JSON schema') }
  if (chat && s.tools.trim()) body.tools = json(s.tools, 'Tools')
  return { ...body, stream: true, stream_options: { include_usage: true } }
}

interface ChatLogprob {
  token: string
  logprob: number
  top_logprobs: { token: string; logprob: number }[]
}

interface Chunk {
  error?: { message: string }
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens: number } | null }
  choices: {
    text?: string
    delta?: {
      content?: string | null
      reasoning?: string | null
      tool_calls?: { index: number; function: { name?: string; arguments?: string } }[]
    }
    finish_reason: string | null
    logprobs?: {
      content?: ChatLogprob[] | null
      tokens?: string[]
      token_logprobs?: (number | null)[]
      top_logprobs?: (Record<string, number> | null)[]
    } | null
  }[]
}

function tokensOf(choice: Chunk['choices'][number]): Token[] {
  const found = choice.logprobs
  if (!found) return []
  if (found.content)
    return found.content.map((t) => ({
      text: t.token,
      logprob: t.logprob,
      top: t.top_logprobs.map((other) => ({ text: other.token, logprob: other.logprob })),
    }))
  return (found.tokens ?? []).map((text, i) => ({
    text,
    logprob: found.token_logprobs?.[i] ?? 0,
    top: Object.entries(found.top_logprobs?.[i] ?? {})
      .map(([other, logprob]) => ({ text: other, logprob }))
      .sort((a, b) => b.logprob - a.logprob),
  }))
}

// Sends the body and calls `show` with the growing answer. An error is the answer's `error`.
export async function generate(
  prompt: Message[] | string,
  settings: Settings,
  signal: AbortSignal,
  show: (answer: Answer) => void,
): Promise<void> {
  const answer = emptyAnswer()
  const started = performance.now()
  try {
    const path = typeof prompt === 'string' ? '/v1/completions' : '/v1/chat/completions'
    for await (const data of events(path, signal, requestBody(prompt, settings))) {
      const chunk: Chunk = JSON.parse(data)
      if (chunk.error) throw new Error(chunk.error.message)
      if (chunk.usage) {
        answer.promptTokens = chunk.usage.prompt_tokens
        answer.cachedTokens = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0
        answer.outputTokens = chunk.usage.completion_tokens
      }
      const choice = chunk.choices[0]
      if (!choice) continue
      answer.text += choice.text ?? choice.delta?.content ?? ''
      answer.reasoning += choice.delta?.reasoning ?? ''
      answer.tokens.push(...tokensOf(choice))
      for (const call of choice.delta?.tool_calls ?? []) {
        const all = (answer.calls[call.index] ??= { name: '', arguments: '' })
        all.name += call.function.name ?? ''
        all.arguments += call.function.arguments ?? ''
      }
      answer.finish = choice.finish_reason ?? answer.finish
      if (!answer.firstMs && (answer.text || answer.reasoning || answer.calls.length))
        answer.firstMs = performance.now() - started
      show(answer)
    }
  } catch (error) {
    if (signal.aborted) answer.finish = 'stopped'
    else answer.error = (error as Error).message
  }
  answer.totalMs = performance.now() - started
  show(answer)
}
