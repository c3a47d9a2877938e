// The page: a playground for the model, and the engine at work or, from a router, its fleet.
import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { getJson } from './api'
import { Engine } from './engine'
import { Fleet } from './fleet'
import { Models } from './models'
import { Playground } from './playground'
import './style.css'

interface Model {
  id: string
  max_model_len?: number | null // of workers of other makes it may be unknown
  state?: string // only of a server with many models
}

const app = document.getElementById('app') as HTMLElement
const PLAYGROUND = { hash: '#playground', name: 'Playground' }
const ENGINE = { hash: '#engine', name: 'Engine' }
const FLEET = { hash: '#fleet', name: 'Fleet' }
const MODELS = { hash: '#models', name: 'Models' }

const viewsOf = (models: Model[]) => [
  PLAYGROUND,
  app.dataset.of === 'fleet' ? FLEET : models[0]?.state ? MODELS : ENGINE,
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
  return hash
}

function Page() {
  const asked = useHash()
  const [models, setModels] = useState<Model[]>([])
  const [chosen, setChosen] = useState('')
  const [error, setError] = useState('')
  useEffect(() => {
    getJson<{ data: Model[] }>('/v1/models').then(
      (list) => setModels(list.data),
      (problem: Error) => setError(problem.message),
    )
  }, [])
  const views = viewsOf(models)
  const hash = views.some((view) => view.hash === asked) ? asked : PLAYGROUND.hash
  const model = models[0]
  return (
    <>
      <header>
        <h1>Octavo</h1>
        {model?.state ? (
          <select aria-label="Model" value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
            {models.map((each, i) => (
              <option key={each.id} value={i === 0 ? '' : each.id}>
                {each.id}
              </option>
            ))}
          </select>
        ) : (
          <p class="model" title={model?.id}>
            {model ? title(model) : error}
          </p>
        )}
        <nav aria-label="Views">
          {views.map((view) => (
            <a key={view.hash} href={view.hash} aria-current={view.hash === hash ? 'page' : undefined}>
              {view.name}
            </a>
          ))}
        </nav>
      </header>
      <main>
        <div hidden={hash !== '#playground'}>
          <Playground model={chosen} />
        </div>
        {hash === '#engine' && <Engine />}
        {hash === '#fleet' && <Fleet />}
        {hash === '#models' && <Models />}
      </main>
    </>
  )
}

render(<Page />, app)
