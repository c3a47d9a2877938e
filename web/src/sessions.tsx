// The sessions of the server: their size, state, age and hits.
import { useEffect, useState } from 'preact/hooks'
import { getJson } from './api'

const INTERVAL_MS = 2000
const ROWS_MAX = 100

interface Session {
  id: string
  engine: number
  state: string
  active: boolean
  tokens: number
  held_tokens: number
  age_seconds: number
  idle_seconds: number
  turns: number
  usage: { prompt_tokens: number; cached_tokens: number }
}

interface SessionList {
  data: Session[]
  has_more: boolean
}

function duration(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(0)} s`
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(0)} h`
}

function hitRate(session: Session): string {
  const { prompt_tokens, cached_tokens } = session.usage
  return prompt_tokens > 0 ? `${((100 * cached_tokens) / prompt_tokens).toFixed(0)} %` : '–'
}

export function Sessions() {
  const [list, setList] = useState<SessionList>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    let timer = 0
    let stopped = false
    const read = async () => {
      try {
        setList(await getJson<SessionList>(`/v1/sessions?limit=${ROWS_MAX}`))
        setProblem('')
      } catch (error) {
        setProblem((error as Error).message)
      }
      if (!stopped) timer = window.setTimeout(read, INTERVAL_MS)
    }
    void read()
    return () => {
      stopped = true
      window.clearTimeout(timer)
    }
  }, [])
  if (problem) return <p class="error">{problem}</p>
  if (!list) return <p>Waiting for the list.</p>
  if (list.data.length === 0) return <p>No sessions. A request with a session_id creates one.</p>
  return (
    <div class="sessions">
      <table>
        <thead>
          <tr>
            <th>Session</th>
            <th>State</th>
            <th>Tokens</th>
            <th>Cached now</th>
            <th>Hits</th>
            <th>Turns</th>
            <th>Age</th>
            <th>Last turn</th>
          </tr>
        </thead>
        <tbody>
          {list.data.map((s) => (
            <tr key={`${s.engine} ${s.id}`}>
              <td class="id" title={s.id}>{s.id}</td>
              <td>{s.active ? `${s.state}, running` : s.state}</td>
              <td>{s.tokens.toLocaleString()}</td>
              <td>{s.held_tokens.toLocaleString()}</td>
              <td>{hitRate(s)}</td>
              <td>{s.turns}</td>
              <td>{duration(s.age_seconds)}</td>
              <td>{s.active ? 'now' : `${duration(s.idle_seconds)} ago`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.has_more && <p>{`Only the first ${ROWS_MAX} sessions are shown.`}</p>}
    </div>
  )
}
