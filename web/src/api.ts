// Requests to the server that this page came from.

function headers(): Record<string, string> {
  const key = sessionStorage.getItem('octavo-api-key')
  return key ? { Authorization: `Bearer ${key}` } : {}
}

// The server's error as one line.
async function errorOf(response: Response): Promise<Error> {
  const text = await response.text()
  try {
    return new Error(JSON.parse(text).error.message)
  } catch {
    return new Error(`${response.status}: ${text.slice(0, 200)}`)
  }
}

export async function getJson<T>(path: string): Promise<T> {
  const response = await fetch(path, { headers: headers() })
  if (!response.ok) throw await errorOf(response)
  return response.json()
}

export async function post(path: string): Promise<void> {
  const response = await fetch(path, { method: 'POST', headers: headers() })
  if (!response.ok) throw await errorOf(response)
}

// The data of server-sent events, one by one until "[DONE]" or the end. With a body it is posted as JSON.
export async function* events(path: string, signal: AbortSignal, body?: unknown): AsyncGenerator<string> {
  const response = await fetch(path, {
    signal,
    method: body === undefined ? 'GET' : 'POST',
    headers: body === undefined ? headers() : { ...headers(), 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  if (!response.ok || !response.body) throw await errorOf(response)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      const parts = (rest + value).split('\n\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        if (!part.startsWith('data: ')) continue
        const data = part.slice(6)
        if (data === '[DONE]') return
        yield data
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}
