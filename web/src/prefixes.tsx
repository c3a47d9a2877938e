// The prefix cache as a tree: texts run to the right from their first token, and fork where they differ.
import type { PrefixNode } from './live'

const WIDTH = 480
const HEIGHT = 150

interface Place {
  node: PrefixNode
  x: number // of its first block, in blocks
  y: number // 0 to 1
  height: number
}

// The length of a node shows its blocks, its height the number of its leaves.
function places(nodes: PrefixNode[]): Place[] {
  const children = nodes.map(() => [] as number[])
  const roots: number[] = []
  nodes.forEach((node, i) => (node.parent < 0 ? roots : children[node.parent]!).push(i))
  const leaves = nodes.map(() => 0)
  for (let i = nodes.length - 1; i >= 0; --i) {
    leaves[i] = Math.max(1, leaves[i]!)
    const parent = nodes[i]!.parent
    if (parent >= 0) leaves[parent]! += leaves[i]!
  }
  const out: Place[] = []
  const put = (list: number[], x: number, y: number, height: number) => {
    const all = list.reduce((sum, i) => sum + leaves[i]!, 0)
    for (const i of list) {
      const own = (height * leaves[i]!) / all
      out.push({ node: nodes[i]!, x, y, height: own })
      put(children[i]!, x + nodes[i]!.blocks, y, own)
      y += own
    }
  }
  put(roots, 0, 0, 1)
  return out
}

export function Prefixes(props: { nodes: PrefixNode[]; leftOut: number }) {
  if (props.nodes.length === 0) return <p class="faint">Nothing is cached.</p>
  const shown = places(props.nodes)
  const right = Math.max(...shown.map((place) => place.x + place.node.blocks))
  const blocks = props.nodes.reduce((sum, node) => sum + node.blocks, 0)
  const shared = props.nodes.reduce((sum, node) => sum + node.shared, 0)
  const color = (node: PrefixNode) => (node.shared > 0 ? 'prefill' : node.used > 0 ? 'decode' : 'cached')
  const words = `${blocks} blocks in ${props.nodes.length} pieces, up to ${right} one behind another, ${shared} of them shared by running requests`
  return (
    <figure>
      <figcaption>
        <span class="key">
          <i class="prefill" />
          shared by requests
        </span>
        <span class="key">
          <i class="decode" />
          of one request
        </span>
        <span class="key">
          <i class="cached" />
          kept
        </span>
        <span class="faint">
          to {right.toLocaleString()} blocks{props.leftOut > 0 && `; ${props.leftOut.toLocaleString()} small pieces are left out`}
        </span>
      </figcaption>
      <svg
        class="tree"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Prefix tree: ${words}`}
      >
        {shown.map(({ node, x, y, height }, i) => (
          <rect
            key={i}
            class={color(node)}
            x={(WIDTH * x) / right}
            y={HEIGHT * y}
            width={(WIDTH * node.blocks) / right - 1}
            height={HEIGHT * height * 0.85}
          >
            <title>{`${node.blocks} blocks from block ${x + 1} on: ${node.used} in use, ${node.shared} shared`}</title>
          </rect>
        ))}
      </svg>
    </figure>
  )
}
