// The form of sampling parameters. A field left empty is left to the model and the server.
import type { Settings } from './generation'

const NUMBERS: { name: keyof Settings; label: string; step: string; min?: string; max?: string; empty?: string }[] = [
  { name: 'max_tokens', label: 'Max tokens', step: '1', min: '1' },
  { name: 'min_tokens', label: 'Min tokens', step: '1', min: '0' },
  { name: 'temperature', label: 'Temperature', step: '0.1', min: '0', max: '2' },
  { name: 'top_p', label: 'Top p', step: '0.05', min: '0', max: '1' },
  { name: 'top_k', label: 'Top k', step: '1', min: '-1' },
  { name: 'min_p', label: 'Min p', step: '0.05', min: '0', max: '1' },
  { name: 'presence_penalty', label: 'Presence penalty', step: '0.1', min: '-2', max: '2' },
  { name: 'frequency_penalty', label: 'Frequency penalty', step: '0.1', min: '-2', max: '2' },
  { name: 'repetition_penalty', label: 'Repetition penalty', step: '0.1', min: '0' },
  { name: 'seed', label: 'Seed', step: '1', empty: 'random' },
]

export function SettingsForm(props: { chat: boolean; value: Settings; change: (value: Settings) => void }) {
  const set = (name: keyof Settings, value: string | boolean) => props.change({ ...props.value, [name]: value })
  const area = (name: 'stop' | 'schema' | 'tools', label: string, hint: string, rows: number) => (
    <label class="wide">
      {label}
      <textarea
        name={name}
        rows={rows}
        spellcheck={false}
        placeholder={hint}
        value={props.value[name]}
        onInput={(event) => set(name, event.currentTarget.value)}
      />
    </label>
  )
  return (
    <form class="settings" aria-label="Parameters" onSubmit={(event) => event.preventDefault()}>
      {NUMBERS.map(({ name, label, empty, ...limits }) => (
        <label key={name}>
          {label}
          <input
            type="number"
            name={name}
            {...limits}
            placeholder={empty ?? 'default'}
            value={props.value[name] as string}
            onInput={(event) => set(name, event.currentTarget.value)}
          />
        </label>
      ))}
      <label class="check">
        <input
          type="checkbox"
          name="logprobs"
          checked={props.value.logprobs}
          onChange={(event) => set('logprobs', event.currentTarget.checked)}
        />
        Show log-probabilities
      </label>
      {area('stop', 'Stop strings, one a line', '', 2)}
      {area('schema', 'JSON schema of the answer', '{"type": "object", "properties": {}}', 3)}
      {props.chat && area('tools', 'Tools, as a JSON list', '[{"type": "function", "function": {}}]', 3)}
    </form>
  )
}
