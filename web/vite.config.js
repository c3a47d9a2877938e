// Builds dist/index.html and dist/login.html: each one file with its script and style inside, which the server keeps in
// its binary. What may run is written down as hashes in a Content-Security-Policy.
import { createHash } from 'node:crypto'
import { defineConfig } from 'vite'

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

function oneFileEach() {
  return {
    name: 'one-file-each',
    enforce: 'post',
    generateBundle(_, bundle) {
      const pages = Object.values(bundle)
        .filter((file) => file.fileName.endsWith('.html'))
        .sort((a, b) => a.fileName.localeCompare(b.fileName)) // whichever was ready first
      const scripts = new Set()
      const styles = new Set()
      for (const page of pages) {
        page.source = page.source
          .replace(/\s*<link rel="modulepreload"[^>]*>/g, '')
          .replace(/<script type="module"[^>]*src="\/([^"]+)"[^>]*><\/script>/g, (_, name) => {
            const code = bundle[name].code.trim().replaceAll('</script', '<\\/script')
            scripts.add(hash(code))
            return `<script type="module">${code}</script>`
          })
          .replace(/<link rel="stylesheet"[^>]*href="\/([^"]+)"[^>]*>/g, (_, name) => {
            const style = bundle[name].source.trim()
            styles.add(hash(style))
            return `<style>${style}</style>`
          })
      }
      // One policy for both: the login page turns into the other.
      const policy =
        `default-src 'none'; script-src ${[...scripts].join(' ')}; style-src ${[...styles].join(' ')}; ` +
        `connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'`
      for (const page of pages) {
        page.source = page.source.replace(
          '<meta charset="utf-8">',
          `<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">`,
        )
      }
      for (const name of Object.keys(bundle)) if (!name.endsWith('.html')) delete bundle[name]
    },
  }
}

export default defineConfig({
  plugins: [oneFileEach()],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: { input: ['index.html', 'login.html'] },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8000', '/octavo': 'http://127.0.0.1:8000' } },
})
