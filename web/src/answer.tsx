// An answer as it grows: thoughts, text, tool calls, and how it went.
import { useState } from 'preact/hooks'
import type { Answer, Token } from './generation'

const percent = (logprob: number) => `${(100 * Math.exp(logprob)).toFixed(1)} %`
const visible = (text: string) => (text === '' ? '(none)' : JSON.stringify(text).slice(1, -1).replace(/^ /, '␣'))

// The text by tokens; less likely ones are more marked. Below it: details of the token under the pointer.
function Tokens(props: { tokens: Token[] }) {
  const [chosen, setChosen] = useState(-1)
  const token = props.tokens[chosen]
  return (
    <>
      <p class="text tokens">
        {props.tokens.map((t, i) => (
          <span
            key={i}
            class={`p${Math.min(4, Math.floor(-t.logprob))}${i === chosen ? ' chosen' : ''}`}
            onMouseEnter={() => setChosen(i)}
            onClick={() => setChosen(i)}
          >
            {t.text}
          </span>
        ))}
      </p>
      <p class="candidates" aria-live="polite">
        {token ? (
          <>
            <b>{visible(token.text)}</b> {percent(token.logprob)}
            {token.top.map((other, i) => (
              <span key={i}>
                {visible(other.text)} <i>{percent(other.logprob)}</i>
              </span>
            ))}
          </>
        ) : (
          'Point at a token to see what else was likely.'
        )}
      </p>
    </>
  )
}

function Timing(props: { answer: Answer }) {
  const a = props.answer
  if (!a.totalMs) return null
  const parts = [
    a.finish && `finish: ${a.finish}`,
    a.outputTokens && `${a.promptTokens} + ${a.outputTokens} tokens`,
    a.cachedTokens && `${a.cachedTokens} cached`,
    a.firstMs && `first token after ${a.firstMs.toFixed(0)} ms`,
    a.outputTokens && `${+(a.outputTokens / (a.totalMs / 1000)).toPrecision(3)} tokens/s`,
  ]
  return <p class="timing">{parts.filter(Boolean).join(' · ')}</p>
}

export function AnswerView(props: { answer: Answer; running: boolean }) {
  const a = props.answer
  const tokens = a.tokens.length > 0 && !a.reasoning && a.calls.length === 0
  return (
    <div class="answer" aria-busy={props.running}>
      {a.reasoning && (
        <details open={a.text === ''}>
          <summary>Reasoning</summary>
          <p class="text faint">{a.reasoning}</p>
        </details>
      )}
      {tokens ? <Tokens tokens={a.tokens} /> : <p class="text">{a.text}</p>}
      {a.calls.map((call, i) => (
        <pre key={i} class="call">
          {call.name}({call.arguments})
        </pre>
      ))}
      {a.error && (
        <p class="error" role="alert">
          {a.error}
        </p>
      )}
      {!props.running && <Timing answer={a} />}
    </div>
  )
}
