// The models of a server with many models: their states, with buttons to load and unload them.
import { useEffect, useState } from 'preact/hooks'
import { getJson, post } from './api'

interface Model {
  id: string
  parent: string | null // of an adapter
  state: 'unloaded' | 'loading' | 'loaded' | 'unloading' | 'failed'
  error?: string
  size: number // bytes of weights
  kv_cache_size: number
  kv_cache_kept: boolean
  pinned: boolean
  unfinished: number // answers
  last_use: number | null // seconds since 1970
}

const INTERVAL_MS = 1000

const bytes = (count: number) => (count >= 1e9 ? `${(count / 1e9).toFixed(2)} GB` : `${(count / 1e6).toFixed(1)} MB`)
const ago = (time: number | null) => (time === null ? '–' : `${Math.max(0, Math.round(Date.now() / 1000 - time))} s ago`)

export function Models() {
  const [models, setModels] = useState<Model[]>()
  const [problem, setProblem] = useState('')
  const [refusal, setRefusal] = useState('')
  useEffect(() => {
    let timer = 0
    let shown = true
    const read = async () => {
      try {
        const list = (await getJson<{ data: Model[] }>('/v1/models')).data
        if (!shown) return
        setModels(list.filter((model) => !model.parent))
        setProblem('')
      } catch (error) {
        setProblem((error as Error).message)
      }
      if (shown) timer = setTimeout(read, INTERVAL_MS)
    }
    void read()
    return () => {
      shown = false
      clearTimeout(timer)
    }
  }, [])
  if (!models) return <p role="status">{problem || 'Waiting for the server.'}</p>
  const loaded = models.filter((model) => model.state === 'loaded').length
  const change = (model: Model, verb: 'load' | 'unload') => {
    setRefusal('')
    post(`/models/${model.id}/${verb}`).catch((error: Error) => setRefusal(`${model.id}: ${error.message}`))
  }
  return (
    <div class="engine">
      <p role="status" class={problem ? 'error' : 'good'}>
        {problem ? `Not connected: ${problem}` : `${loaded} of ${models.length} models are loaded`}
      </p>
      {refusal && (
        <p class="error" role="alert">
          {refusal}
        </p>
      )}
      <section class="workers" tabIndex={0} aria-label="Models">
        <table>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col">State</th>
              <th scope="col">Weights</th>
              <th scope="col">KV cache</th>
              <th scope="col">Unfinished</th>
              <th scope="col">Last use</th>
              <th scope="col">Change</th>
            </tr>
          </thead>
          <tbody>
            {models.map((model) => (
              <tr key={model.id}>
                <th scope="row">{model.id}</th>
                <td class={model.state === 'loaded' ? 'good' : model.state === 'failed' ? 'error' : ''} title={model.error}>
                  {model.state}
                  {model.pinned && ', pinned'}
                </td>
                <td>{bytes(model.size)}</td>
                <td>{model.kv_cache_kept ? bytes(model.kv_cache_size) : '–'}</td>
                <td>{model.unfinished}</td>
                <td>{ago(model.last_use)}</td>
                <td>
                  {model.state === 'loaded' ? (
                    <button type="button" aria-label={`Unload ${model.id}`} onClick={() => change(model, 'unload')}>
                      Unload
                    </button>
                  ) : (
                    <button type="button" aria-label={`Load ${model.id}`} onClick={() => change(model, 'load')}>
                      Load
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  )
}
