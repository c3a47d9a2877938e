// Small charts in SVG. Each says in words what it shows, for those who do not see it.
import type { Step } from './live'

const WIDTH = 480
const HEIGHT = 90

export interface Series {
  name: string
  color: string // a CSS variable
  values: number[]
}

const compact = (value: number) =>
  value >= 10_000 ? `${(value / 1000).toFixed(0)}k` : value >= 100 ? value.toFixed(0) : value.toFixed(value < 10 ? 1 : 0)

// Lines over the same time, newest at the right edge; `places`: how many values fill the width.
export function Lines(props: { label: string; series: Series[]; places: number; top?: number }) {
  const top = props.top ?? Math.max(1, ...props.series.flatMap((s) => s.values)) * 1.1
  const words = props.series.map((s) => `${s.name} ${compact(s.values.at(-1) ?? 0)}`).join(', ')
  return (
    <figure>
      <figcaption>
        {props.series.map((s) => (
          <span key={s.name} class="key">
            <i class={s.color} />
            {s.name}
          </span>
        ))}
        <span class="faint">to {compact(top)}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${props.label}: ${words}`}>
        {props.series.map((s) => {
          const step = WIDTH / (props.places - 1)
          const from = WIDTH - (s.values.length - 1) * step
          const points = s.values.map((v, i) => `${(from + i * step).toFixed(1)},${(HEIGHT * (1 - v / top)).toFixed(1)}`)
          return <polyline key={s.name} class={s.color} points={points.join(' ')} />
        })}
      </svg>
    </figure>
  )
}

// A bar a step: tokens of prompts below, of answers above.
export function Steps(props: { steps: Step[]; places: number }) {
  const top = Math.max(1, ...props.steps.map((s) => s.prompt_tokens + s.answer_tokens))
  const width = WIDTH / props.places
  const last = props.steps.at(-1)
  const words = last
    ? `the last step had ${last.prompt_tokens} prompt tokens and ${last.answer_tokens} of answers, in ${last.microseconds} µs`
    : 'no step yet'
  return (
    <figure>
      <figcaption>
        <span class="key">
          <i class="prefill" />
          prompt tokens
        </span>
        <span class="key">
          <i class="decode" />
          tokens of answers
        </span>
        <span class="faint">to {top}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Batch of each step: ${words}`}>
        {props.steps.map((s, i) => {
          const x = (props.places - props.steps.length + i) * width
          const prefill = (HEIGHT * s.prompt_tokens) / top
          const decode = (HEIGHT * s.answer_tokens) / top
          return (
            <g key={s.number}>
              <title>{`step ${s.number}: ${s.prompt_tokens} + ${s.answer_tokens} tokens, ${s.microseconds} µs`}</title>
              <rect class="prefill" x={x} y={HEIGHT - prefill} width={width * 0.8} height={prefill} />
              <rect class="decode" x={x} y={HEIGHT - prefill - decode} width={width * 0.8} height={decode} />
            </g>
          )
        })}
      </svg>
    </figure>
  )
}

// A dot for each step: its time over its computed tokens. Dots on a level line: reading the weights takes the
// time. A rising line: computing does.
export function StepTimes(props: { steps: Step[]; unit: (seconds: number) => string }) {
  const tokens = (s: Step) => s.prompt_tokens + s.answer_tokens
  const right = Math.max(1, ...props.steps.map(tokens))
  const top = Math.max(1, ...props.steps.map((s) => s.microseconds))
  const words = props.steps.length ? `up to ${right} tokens, up to ${props.unit(top * 1e-6)}` : 'no step yet'
  return (
    <figure>
      <figcaption>
        <span class="key">
          <i class="prefill" />
          with prompt tokens
        </span>
        <span class="key">
          <i class="decode" />
          answers alone
        </span>
        <span class="faint">
          to {right} tokens, {props.unit(top * 1e-6)}
        </span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Time of each step: ${words}`}>
        {props.steps.map((s) => (
          <rect
            key={s.number}
            class={s.prompt_tokens > 0 ? 'prefill' : 'decode'}
            x={((WIDTH - 4) * tokens(s)) / right}
            y={(HEIGHT - 4) * (1 - s.microseconds / top)}
            width={4}
            height={4}
          >
            <title>{`${tokens(s)} tokens in ${props.unit(s.microseconds * 1e-6)}`}</title>
          </rect>
        ))}
      </svg>
    </figure>
  )
}

// Shares of a whole, as a row of cells.
export function Cells(props: { label: string; parts: { name: string; color: string; count: number }[] }) {
  const CELLS = 120
  const all = Math.max(
    1,
    props.parts.reduce((sum, part) => sum + part.count, 0),
  )
  let before = 0
  const colors: string[] = []
  for (const part of props.parts) {
    before += part.count
    while (colors.length < Math.round((CELLS * before) / all)) colors.push(part.color)
  }
  const words = props.parts.map((part) => `${part.count.toLocaleString()} ${part.name}`).join(', ')
  return (
    <figure>
      <figcaption>
        {props.parts.map((part) => (
          <span key={part.name} class="key">
            <i class={part.color} />
            {part.count.toLocaleString()} {part.name}
          </span>
        ))}
      </figcaption>
      <div class="cells" role="img" aria-label={`${props.label}: ${words}`}>
        {colors.map((color, i) => (
          <i key={i} class={color} />
        ))}
      </div>
    </figure>
  )
}

// Counts of a histogram's buckets, from the first to the last that has any.
export function Buckets(props: { label: string; bounds: number[]; counts: number[]; unit: (value: number) => string }) {
  const first = props.counts.findIndex((count) => count > 0)
  const last = props.counts.findLastIndex((count) => count > 0)
  if (first < 0) return <p class="faint">Nothing in the last minute.</p>
  const shown = props.counts.slice(first, last + 1)
  const top = Math.max(...shown)
  const name = (i: number) =>
    first + i < props.bounds.length ? `≤ ${props.unit(props.bounds[first + i]!)}` : `> ${props.unit(props.bounds.at(-1)!)}`
  const words = shown.map((count, i) => `${name(i)}: ${count}`).join(', ')
  return (
    <ul class="buckets" aria-label={`${props.label}: ${words}`}>
      {shown.map((count, i) => (
        <li key={first + i}>
          <span>{name(i)}</span>
          <meter min={0} max={top} value={count}>
            {count}
          </meter>
          <span>{count}</span>
        </li>
      ))}
    </ul>
  )
}
