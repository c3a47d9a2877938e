// The engine at work: queue, steps, KV blocks, latencies.
import { Buckets, Cells, Lines, StepTimes, Steps } from './charts'
import { HISTORY_MAX, quantile, type Rates, STEPS_MAX, useLive } from './live'
import { Prefixes } from './prefixes'
import { Sessions } from './sessions'

const seconds = (value: number) =>
  value < 0.001 ? `${(value * 1e6).toFixed(0)} µs` : value < 1 ? `${+(value * 1e3).toPrecision(3)} ms` : `${+value.toPrecision(3)} s`
const whole = (value: number) => Math.round(value).toLocaleString()
const optional = (value: number | undefined, show: (value: number) => string) => (value === undefined ? '–' : show(value))

function Figure(props: { name: string; value: string }) {
  return (
    <div class="figure">
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  )
}

export function Engine() {
  const { now, ...live } = useLive()
  if (!now) return <p role="status">{live.state === 'lost' ? live.problem : 'Waiting for the engine.'}</p>
  const last = live.history.at(-1)!
  const of = (value: (r: Rates) => number) => live.history.map(value)
  const step = live.steps.at(-1)
  return (
    <div class="engine">
      <p role="status" class={live.state === 'live' && now.healthy ? 'good' : 'error'}>
        {live.state !== 'live' ? `Not connected: ${live.problem}` : now.healthy ? 'Live' : 'The engine has failed.'}
      </p>
      <dl class="figures">
        <Figure name="Running" value={whole(now.running)} />
        <Figure name="Waiting" value={whole(now.waiting)} />
        <Figure name="Generated tokens/s" value={whole(last.generated)} />
        <Figure name="Prompt tokens/s" value={whole(last.prompt)} />
        <Figure name="Prefix hit rate" value={optional(live.hitRate, (v) => `${(100 * v).toFixed(0)} %`)} />
        <Figure name="Preemptions" value={whole(now.preemptions)} />
        <Figure name="Last step" value={optional(step?.microseconds, (v) => seconds(v * 1e-6))} />
        <Figure name="TTFT p50" value={optional(quantile(0.5, now.ttft.bounds, live.ttft), seconds)} />
        <Figure name="TTFT p99" value={optional(quantile(0.99, now.ttft.bounds, live.ttft), seconds)} />
        <Figure name="ITL p50" value={optional(quantile(0.5, now.itl.bounds, live.itl), seconds)} />
        <Figure name="ITL p99" value={optional(quantile(0.99, now.itl.bounds, live.itl), seconds)} />
      </dl>
      <div class="panels">
        <section>
          <h2>Requests</h2>
          <Lines
            label="Requests"
            places={HISTORY_MAX}
            series={[
              { name: 'running', color: 'decode', values: of((r) => r.running) },
              { name: 'waiting', color: 'prefill', values: of((r) => r.waiting) },
            ]}
          />
        </section>
        <section>
          <h2>Tokens a second</h2>
          <Lines
            label="Tokens a second"
            places={HISTORY_MAX}
            series={[
              { name: 'generated', color: 'decode', values: of((r) => r.generated) },
              { name: 'prompt', color: 'prefill', values: of((r) => r.prompt) },
            ]}
          />
        </section>
        <section>
          <h2>Batch of each step, and its time over its tokens</h2>
          <Steps steps={live.steps} places={STEPS_MAX} />
          <StepTimes steps={live.steps} unit={seconds} />
        </section>
        <section>
          <h2>KV blocks</h2>
          <Cells
            label="KV blocks"
            parts={[
              { name: 'used', color: 'decode', count: now.blocks.used },
              { name: 'cached', color: 'cached', count: now.blocks.cached },
              { name: 'free', color: 'free', count: now.blocks.total - now.blocks.used - now.blocks.cached },
            ]}
          />
          <Lines
            label="KV cache in use"
            places={HISTORY_MAX}
            top={1}
            series={[{ name: 'share in use', color: 'decode', values: of((r) => r.cacheUsed) }]}
          />
        </section>
        <section>
          <h2>Prefix tree</h2>
          <Prefixes nodes={now.prefixes.nodes} leftOut={now.prefixes.left_out} />
        </section>
        <section>
          <h2>Time to first token, last minute</h2>
          <Buckets label="Time to first token" bounds={now.ttft.bounds} counts={live.ttft} unit={seconds} />
        </section>
        <section>
          <h2>Between tokens, last minute</h2>
          <Buckets label="Time between tokens" bounds={now.itl.bounds} counts={live.itl} unit={seconds} />
        </section>
        <section class="wide">
          <h2>Sessions</h2>
          <Sessions />
        </section>
      </div>
    </div>
  )
}
