// The whole page in one file, dist/viewer.html: `tt export -o s.html` puts a session into it, and it
// opens from disk (docs/exports.md). vite.config.ts builds it, too.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { defineConfig, runnerImport, type Plugin, type Rolldown } from 'vite';

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

export default defineConfig({
  base: './',
  publicDir: false, // the example session
  build: {
    target: 'es2023',
    assetsInlineLimit: Infinity,
    cssCodeSplit: false,
    modulePreload: false,
    emptyOutDir: false,
    rolldownOptions: {
      input: 'index.html',
      output: { codeSplitting: false },
      checks: { bundlerTimings: false }, // the questions take most of it
    },
    chunkSizeWarningLimit: 4096, // kB
  },
  plugins: [inlineWorker(), oneFile()],
});

function inlineWorker(): Plugin {
  return {
    name: 'inline-worker',
    enforce: 'pre',
    resolveId: (source) =>
      source.endsWith('/start_layout_worker')
        ? path('src/workers/start_layout_worker_inline.ts')
        : null,
  };
}

// Puts the script and the styles into the HTML, and the questions that the exporter asks. The policy
// lets the page run its own script and nothing else, and lets it request nothing.
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle: { order: 'post', handler }, // after the plugins of vite, which finish the script
  };

  async function handler(this: Rolldown.PluginContext, _: unknown, bundle: Rolldown.OutputBundle) {
    const { module } = await runnerImport<typeof import('./src/file/questions')>(
      path('src/file/questions.ts'),
    );
    const json = JSON.stringify(await module.questions()).replaceAll('<', '\\u003c');
    const take = (end: string): string => {
      const [name, file] = Object.entries(bundle).find(([one]) => one.endsWith(end)) ?? [];
      if (name === undefined || !file) throw new Error(`The build has no ${end}.`);
      delete bundle[name]; // eslint-disable-line @typescript-eslint/no-dynamic-delete
      return textOf(file);
    };
    const script = take('.js').replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3C!--');
    const styles = take('.css');
    const icon = Buffer.from(take('.svg')).toString('base64');
    const hash = createHash('sha256').update(script).digest('base64');
    const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'`;
    const html = take('.html')
      .replace(/<script type="module"[^>]*><\/script>/, '')
      .replace(/href="[^"]+\.svg"/, `href="data:image/svg+xml;base64,${icon}"`)
      .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${styles}</style>`)
      .replace('<head>', `<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
      .replace(
        '</body>',
        () =>
          `<script type="application/json" id="questions">${json}</script>\n<script type="module">${script}</script>\n</body>`,
      );
    this.emitFile({ type: 'asset', fileName: 'viewer.html', source: html });
  }
}

const textOf = (file: Rolldown.OutputAsset | Rolldown.OutputChunk): string =>
  file.type === 'chunk' ? file.code : new TextDecoder().decode(Buffer.from(file.source));
