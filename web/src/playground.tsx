// Talk to the model: chat with messages that can be edited, or completion of a text.
import { useEffect, useRef, useState } from 'preact/hooks'
import { AnswerView } from './answer'
import { type Answer, DEFAULTS, emptyAnswer, generate, type Message, requestBody, type Settings } from './generation'
import { SettingsForm } from './settings'

interface Turn {
  content: string // the user's
  images: string[] // before it, as data URLs
  answer?: Answer
}

const CURL_KEY = "-H 'Authorization: Bearer KEY' "

function messagesOf(system: string, turns: Turn[]): Message[] {
  const messages: Message[] = system.trim() ? [{ role: 'system', content: system }] : []
  for (const turn of turns) {
    const images = turn.images.map((url) => ({ type: 'image_url' as const, image_url: { url } }))
    const content = images.length ? [...images, { type: 'text' as const, text: turn.content }] : turn.content
    messages.push({ role: 'user', content })
    if (turn.answer) messages.push({ role: 'assistant', content: turn.answer.text })
  }
  return messages
}

// One generation at a time: how to begin it and how to stop it. The buttons for that need keys: one element that turned
// from Stop to Send while it is being clicked would send.
function useGeneration() {
  const control = useRef<AbortController>()
  const [running, setRunning] = useState(false)
  useEffect(() => () => control.current?.abort(), [])
  const start = async (prompt: Message[] | string, settings: Settings, show: (answer: Answer) => void) => {
    control.current?.abort()
    const mine = new AbortController()
    control.current = mine
    setRunning(true)
    let answer = emptyAnswer()
    let frame = 0
    const draw = () => {
      frame = 0
      show({ ...answer })
    }
    draw()
    // Tokens come faster than a screen shows them.
    await generate(prompt, settings, mine.signal, (now) => {
      answer = now
      frame ||= requestAnimationFrame(draw)
    })
    cancelAnimationFrame(frame)
    draw()
    if (control.current === mine) setRunning(false)
  }
  return { running, start, stop: () => control.current?.abort() }
}

export function Playground(props: { model: string }) {
  const [chat, setChat] = useState(true)
  const [parameters, setParameters] = useState<Settings>(DEFAULTS)
  const settings = { ...parameters, model: props.model }
  const [copied, setCopied] = useState('')
  const request = useRef<() => Message[] | string>(() => '')

  const copy = async () => {
    const prompt = request.current()
    const path = typeof prompt === 'string' ? '/v1/completions' : '/v1/chat/completions'
    const key = sessionStorage.getItem('octavo-api-key') ? CURL_KEY : ''
    try {
      const body = JSON.stringify(requestBody(prompt, settings)).replaceAll("'", "'\\''")
      await navigator.clipboard.writeText(
        `curl -N ${location.origin}${path} ${key}-H 'Content-Type: application/json' -d '${body}'`,
      )
      setCopied('Copied')
    } catch (error) {
      setCopied((error as Error).message)
    }
    setTimeout(() => setCopied(''), 3000)
  }
  const keep = (prompt: () => Message[] | string) => (request.current = prompt)

  return (
    <div class="playground">
      <section class="talk" aria-label={chat ? 'Chat' : 'Completion'}>
        <div hidden={!chat}>
          <Chat settings={settings} offer={chat ? keep : undefined} />
        </div>
        <div hidden={chat}>
          <Completion settings={settings} offer={chat ? undefined : keep} />
        </div>
      </section>
      <aside>
        <div class="modes" role="group" aria-label="Mode">
          <button type="button" aria-pressed={chat} onClick={() => setChat(true)}>
            Chat
          </button>
          <button type="button" aria-pressed={!chat} onClick={() => setChat(false)}>
            Completion
          </button>
        </div>
        <details open={matchMedia('(min-width: 800px)').matches}>
          <summary>Parameters</summary>
          <SettingsForm chat={chat} value={settings} change={setParameters} />
        </details>
        <p class="row">
          <button type="button" onClick={copy}>
            Copy as curl
          </button>
          <span role="status">{copied}</span>
        </p>
      </aside>
    </div>
  )
}

const dataUrl = (file: File) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result as string)
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })

// Images on their way into a message; without `remove` those of one that is sent.
function Images({ urls, remove }: { urls: string[]; remove?: (place: number) => void }) {
  return (
    <div class="images">
      {urls.map((url, i) =>
        remove ? (
          <button key={i} type="button" aria-label={`Remove image ${i + 1}`} onClick={() => remove(i)}>
            <img src={url} alt="" />
          </button>
        ) : (
          <img key={i} src={url} alt={`Image ${i + 1}`} />
        ),
      )}
    </div>
  )
}

interface ModeProps {
  settings: Settings
  offer?: (prompt: () => Message[] | string) => void // of the request as it would be sent now
}

function Chat({ settings, offer }: ModeProps) {
  const [system, setSystem] = useState('')
  const [turns, setTurns] = useState<Turn[]>([])
  const [draft, setDraft] = useState('')
  const [images, setImages] = useState<string[]>([])
  const [edited, setEdited] = useState(-1)
  const { running, start, stop } = useGeneration()
  const end = useRef<HTMLDivElement>(null)
  offer?.(() => messagesOf(system, draft.trim() ? [...turns, { content: draft, images }] : turns))

  const ask = (before: Turn[], { content, images }: Turn) => {
    const asked = [...before, { content, images }]
    void start(messagesOf(system, asked), settings, (answer) => {
      setTurns([...before, { content, images, answer }])
      end.current?.scrollIntoView({ block: 'nearest' })
    })
  }
  const send = () => {
    if (running || !draft.trim()) return
    ask(turns, { content: draft, images })
    setDraft('')
    setImages([])
  }
  const edit = (i: number, content: string) => {
    setEdited(-1)
    ask(turns.slice(0, i), { ...turns[i]!, content })
  }
  return (
    <>
      <label class="system">
        System message
        <textarea rows={1} value={system} onInput={(event) => setSystem(event.currentTarget.value)} />
      </label>
      <div role="log" aria-label="Conversation" class="log">
        {turns.length === 0 && <p class="faint">Nothing said yet.</p>}
        {turns.map((turn, i) => (
          <article key={i}>
            {edited === i ? (
              <Edit content={turn.content} done={(content) => edit(i, content)} cancel={() => setEdited(-1)} />
            ) : (
              <div class="mine">
                {turn.images.length > 0 && <Images urls={turn.images} />}
                <p class="text">{turn.content}</p>
                <button type="button" disabled={running} onClick={() => setEdited(i)}>
                  Edit
                </button>
                <button type="button" disabled={running} onClick={() => ask(turns.slice(0, i), turn)}>
                  Again
                </button>
              </div>
            )}
            {turn.answer && <AnswerView answer={turn.answer} running={running && i === turns.length - 1} />}
          </article>
        ))}
        <div ref={end} />
      </div>
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault()
          send()
        }}
      >
        <label class="hidden" for="message">
          Message
        </label>
        <textarea
          id="message"
          rows={2}
          placeholder="Message. Enter sends, Shift+Enter makes a new line."
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            send()
          }}
        />
        {running ? (
          <button key="stop" type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button key="send" type="submit" class="primary" disabled={!draft.trim()}>
            Send
          </button>
        )}
        <label class="attach">
          Add image
          <input
            type="file"
            title=""
            accept="image/png,image/jpeg,image/webp"
            multiple
            onChange={async (event) => {
              const input = event.currentTarget
              const added = await Promise.all([...(input.files ?? [])].map(dataUrl))
              input.value = ''
              setImages((before) => [...before, ...added])
            }}
          />
        </label>
        <button type="button" disabled={running || turns.length === 0} onClick={() => setTurns([])}>
          Clear
        </button>
        {images.length > 0 && <Images urls={images} remove={(place) => setImages(images.filter((_, i) => i !== place))} />}
      </form>
    </>
  )
}

function Edit(props: { content: string; done: (content: string) => void; cancel: () => void }) {
  const [content, setContent] = useState(props.content)
  return (
    <form
      class="mine"
      onSubmit={(event) => {
        event.preventDefault()
        props.done(content)
      }}
    >
      <textarea
        aria-label="Edited message"
        rows={3}
        value={content}
        onInput={(event) => setContent(event.currentTarget.value)}
      />
      <button type="submit" class="primary" disabled={!content.trim()}>
        Send
      </button>
      <button type="button" onClick={props.cancel}>
        Cancel
      </button>
    </form>
  )
}

function Completion({ settings, offer }: ModeProps) {
  const [prompt, setPrompt] = useState('One rainy morning in')
  const [answer, setAnswer] = useState<Answer>()
  const { running, start, stop } = useGeneration()
  offer?.(() => prompt)
  const complete = () => {
    if (!running && prompt) void start(prompt, settings, setAnswer)
  }
  return (
    <form
      class="completion"
      onSubmit={(event) => {
        event.preventDefault()
        complete()
      }}
    >
      <label>
        Prompt
        <textarea
          rows={8}
          value={prompt}
          onInput={(event) => setPrompt(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) complete()
          }}
        />
      </label>
      <p class="row">
        {running ? (
          <button key="stop" type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button key="send" type="submit" class="primary" disabled={!prompt}>
            Complete
          </button>
        )}
        <button
          type="button"
          disabled={running || !answer?.text}
          onClick={() => {
            setPrompt(prompt + (answer?.text ?? ''))
            setAnswer(undefined)
          }}
        >
          Add to the prompt
        </button>
      </p>
      {answer && <AnswerView answer={answer} running={running} />}
    </form>
  )
}
