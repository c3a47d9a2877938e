// The server's /octavo/live: a snapshot of the engine a few times a second, and what follows from two of them.
import { useEffect, useState } from 'preact/hooks'
import { events } from './api'

export interface Histogram {
  bounds: number[] // upper, in seconds; one more count for what is above the last
  counts: number[]
}

export interface Step {
  number: number
  prompt_tokens: number
  answer_tokens: number
  microseconds: number
}

// Blocks of the prefix cache that follow one another without a fork.
export interface PrefixNode {
  parent: number // which they follow: its place, before this one; -1: none
  blocks: number
  used: number // of those, by requests that run
  shared: number // by more than one
}

interface Snapshot {
  time: number // seconds since 1970
  healthy: boolean
  running: number
  waiting: number
  blocks: { total: number; used: number; cached: number }
  prompt_tokens: number
  cached_tokens: number
  generation_tokens: number
  preemptions: number
  prefix: { queries: number; hits: number }
  prefixes: { nodes: PrefixNode[]; left_out: number }
  ttft: Histogram
  itl: Histogram
  steps: Step[] // since the last snapshot
}

export interface Rates {
  time: number
  generated: number // tokens a second
  prompt: number
  running: number
  waiting: number
  cacheUsed: number // share of the KV blocks, 0 to 1
}

export interface Live {
  state: 'connecting' | 'live' | 'lost'
  problem: string
  now?: Snapshot
  history: Rates[] // oldest first
  steps: Step[] // oldest first
  hitRate?: number // of the prefix cache over the window
  ttft: number[] // counts over the window
  itl: number[]
}

export const HISTORY_MAX = 240
export const STEPS_MAX = 240
const WINDOW_S = 60
const RETRY_MS = 2000

const EMPTY: Live = { state: 'connecting', problem: '', history: [], steps: [], ttft: [], itl: [] }
const minus = (a: number[], b: number[]) => a.map((count, i) => count - (b[i] ?? 0))

// Takes one snapshot more; `window` holds those of the last minute.
function next(live: Live, window: Snapshot[], now: Snapshot): Live {
  const last = window.at(-1)
  window.push(now)
  while (window.length > 2 && now.time - window[0]!.time > WINDOW_S) window.shift()
  const first = window[0]!
  const seconds = last ? now.time - last.time : 0
  const rate = (count: (s: Snapshot) => number) => (last && seconds > 0 ? (count(now) - count(last)) / seconds : 0)
  const queries = now.prefix.queries - first.prefix.queries
  const rates: Rates = {
    time: now.time,
    generated: rate((s) => s.generation_tokens),
    prompt: rate((s) => s.prompt_tokens - s.cached_tokens),
    running: now.running,
    waiting: now.waiting,
    cacheUsed: now.blocks.total ? now.blocks.used / now.blocks.total : 0,
  }
  return {
    state: 'live',
    problem: '',
    now,
    history: [...live.history, rates].slice(-HISTORY_MAX),
    steps: [...live.steps, ...now.steps].slice(-STEPS_MAX),
    hitRate: queries > 0 ? (now.prefix.hits - first.prefix.hits) / queries : live.hitRate,
    ttft: minus(now.ttft.counts, first.ttft.counts),
    itl: minus(now.itl.counts, first.itl.counts),
  }
}

// Follows the stream as long as it is shown, and connects again when it breaks.
export function useLive(): Live {
  const [live, setLive] = useState<Live>(EMPTY)
  useEffect(() => {
    const control = new AbortController()
    let timer = 0
    const follow = async () => {
      const window: Snapshot[] = []
      let problem = 'The server ended the stream.'
      try {
        for await (const data of events('/octavo/live', control.signal)) {
          const now: Snapshot = JSON.parse(data)
          setLive((before) => next(before, window, now))
        }
      } catch (error) {
        problem = (error as Error).message
      }
      if (control.signal.aborted) return
      setLive((before) => ({ ...before, state: 'lost', problem }))
      timer = setTimeout(follow, RETRY_MS)
    }
    void follow()
    return () => {
      control.abort()
      clearTimeout(timer)
    }
  }, [])
  return live
}

// The value below which a share of the counts lies, linear within a bucket as Prometheus has it; undefined: no counts.
export function quantile(share: number, bounds: number[], counts: number[]): number | undefined {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all === 0) return undefined
  let below = 0
  for (let i = 0; i < bounds.length; ++i) {
    const count = counts[i] ?? 0
    if (below + count >= share * all) {
      const low = i === 0 ? 0 : bounds[i - 1]!
      return low + ((bounds[i]! - low) * (share * all - below)) / Math.max(count, 1)
    }
    below += count
  }
  return bounds.at(-1)
}
