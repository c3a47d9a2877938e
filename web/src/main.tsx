// The page: a playground for the model, and the engine at work or, from a router, its fleet.
import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { getJson } from './api'
import { Engine } from './engine'
import { Fleet } from './fleet'
import { Playground } from './playground'
import './style.css'

interface Model {
  id: string
  max_model_len?: number // of workers of other makes it may be unknown
}

const app = document.getElementById('app') as HTMLElement
const VIEWS = [
  { hash: '#playground', name: 'Playground' },
  app.dataset.of === 'fleet' ? { hash: '#fleet', name: 'Fleet' } : { hash: '#engine', name: 'Engine' },
]

const title = (model: Model) =>
  model.id.split('/').pop() + (model.max_model_len ? `, context of ${model.max_model_len.toLocaleString()} tokens` : '')

function useHash(): string {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const changed = () => setHash(location.hash)
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return VIEWS.some((view) => view.hash === hash) ? hash : '#playground'
}

function Page() {
  const hash = useHash()
  const [model, setModel] = useState<Model>()
  const [error, setError] = useState('')
  useEffect(() => {
    getJson<{ data: Model[] }>('/v1/models').then(
      (list) => setModel(list.data[0]),
      (problem: Error) => setError(problem.message),
    )
  }, [])
  return (
    <>
      <header>
        <h1>Octavo</h1>
        <p class="model" title={model?.id}>
          {model ? title(model) : error}
        </p>
        <nav aria-label="Views">
          {VIEWS.map((view) => (
            <a key={view.hash} href={view.hash} aria-current={view.hash === hash ? 'page' : undefined}>
              {view.name}
            </a>
          ))}
        </nav>
      </header>
      <main>
        <div hidden={hash !== '#playground'}>
          <Playground />
        </div>
        {hash === '#engine' && <Engine />}
        {hash === '#fleet' && <Fleet />}
      </main>
    </>
  )
}

render(<Page />, app)
