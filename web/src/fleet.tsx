// The replicas behind a router: who is there, and what each has to do.
import { useEffect, useState } from 'preact/hooks'
import { getJson } from './api'
import { Lines } from './charts'

interface Worker {
  id: string
  url: string
  worker_type: string
  is_healthy: boolean
  load: number // requests that this router has there
  running: number
  waiting: number
  kv_usage: number // share of its KV blocks
}

interface Sums {
  load: number
  running: number
  waiting: number
}

const INTERVAL_MS = 1000
const HISTORY_MAX = 180

const sums = (workers: Worker[]): Sums => ({
  load: workers.reduce((sum, w) => sum + w.load, 0),
  running: workers.reduce((sum, w) => sum + w.running, 0),
  waiting: workers.reduce((sum, w) => sum + w.waiting, 0),
})

// Asks again and again as long as it is shown.
function useWorkers() {
  const [workers, setWorkers] = useState<Worker[]>()
  const [history, setHistory] = useState<Sums[]>([])
  const [problem, setProblem] = useState('')
  useEffect(() => {
    let timer = 0
    let shown = true
    const ask = async () => {
      try {
        const list = (await getJson<{ workers: Worker[] }>('/workers')).workers
        if (!shown) return
        setWorkers(list)
        setHistory((before) => [...before, sums(list)].slice(-HISTORY_MAX))
        setProblem('')
      } catch (error) {
        setProblem((error as Error).message)
      }
      if (shown) timer = setTimeout(ask, INTERVAL_MS)
    }
    void ask()
    return () => {
      shown = false
      clearTimeout(timer)
    }
  }, [])
  return { workers, history, problem }
}

export function Fleet() {
  const { workers, history, problem } = useWorkers()
  if (!workers) return <p role="status">{problem || 'Waiting for the router.'}</p>
  const healthy = workers.filter((w) => w.is_healthy).length
  return (
    <div class="engine">
      <p role="status" class={!problem && healthy > 0 ? 'good' : 'error'}>
        {problem ? `Not connected: ${problem}` : `${healthy} of ${workers.length} workers take requests`}
      </p>
      <div class="panels">
        <section>
          <h2>Requests</h2>
          <Lines
            label="Requests"
            places={HISTORY_MAX}
            series={[
              { name: 'running', color: 'decode', values: history.map((s) => s.running) },
              { name: 'waiting', color: 'prefill', values: history.map((s) => s.waiting) },
            ]}
          />
        </section>
        <section>
          <h2>On their way through this router</h2>
          <Lines
            label="On their way"
            places={HISTORY_MAX}
            series={[{ name: 'requests', color: 'decode', values: history.map((s) => s.load) }]}
          />
        </section>
      </div>
      <section class="workers" tabIndex={0} aria-label="Workers">
        <table>
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col">Role</th>
              <th scope="col">State</th>
              <th scope="col">From here</th>
              <th scope="col">Running</th>
              <th scope="col">Waiting</th>
              <th scope="col">KV cache</th>
            </tr>
          </thead>
          <tbody>
            {workers.map((w) => (
              <tr key={w.id}>
                <th scope="row">{w.url.replace('http://', '')}</th>
                <td>{w.worker_type}</td>
                <td class={w.is_healthy ? 'good' : 'error'}>{w.is_healthy ? 'ready' : 'left out'}</td>
                <td>{w.load}</td>
                <td>{w.running}</td>
                <td>{w.waiting}</td>
                <td>
                  <meter aria-label={`KV cache of ${w.url}`} min={0} max={1} value={w.kv_usage} />{' '}
                  {(100 * w.kv_usage).toFixed(0)} %
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  )
}
