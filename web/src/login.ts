// The page of a server with an API key: asks for the key, then becomes the main page.
import './login.css'

const form = document.getElementById('login') as HTMLFormElement
const input = document.getElementById('key') as HTMLInputElement
const message = document.getElementById('message') as HTMLElement

async function open(key: string): Promise<void> {
  try {
    const response = await fetch('/', { headers: { Authorization: `Bearer ${key}`, Accept: 'text/html' } })
    if (!response.ok) {
      sessionStorage.removeItem('octavo-api-key')
      message.textContent = 'The server does not take this key.'
      return
    }
    sessionStorage.setItem('octavo-api-key', key)
    const page = await response.text()
    document.open()
    document.write(page)
    document.close()
  } catch {
    message.textContent = 'The server does not answer.'
  }
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  message.textContent = ''
  void open(input.value.trim())
})

const stored = sessionStorage.getItem('octavo-api-key')
if (stored) void open(stored)
