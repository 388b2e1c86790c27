import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { PATIENCE_MS, TEST_MS } from './test/patience.ts';

// tt-server serves the page from any path and without internet access: URLs are relative, and
// nothing is inlined because the content security policy is `default-src 'self'`.
// The same sources as one file (vite.file.config.ts), beside the page.
function viewerBeside(): Plugin {
  let outDir = '';
  return {
    name: 'viewer-beside',
    apply: 'build',
    configResolved: (config) => {
      outDir = config.build.outDir;
    },
    closeBundle: async () => {
      const configFile = fileURLToPath(new URL('vite.file.config.ts', import.meta.url));
      await build({ configFile, build: { outDir }, logLevel: 'warn' });
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [viewerBeside()],
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    license: { fileName: 'licenses.txt' }, // licences of the bundled packages
    // tt-server serves the second page at /api/docs.
    rolldownOptions: { input: { index: 'index.html', docs: 'docs/index.html' } },
    chunkSizeWarningLimit: 2048, // kB: Swagger UI, loaded by the docs page only
  },
  // `npm run dev` serves the sources and forwards /api to a running tt-server.
  server: {
    fs: { allow: ['.', '../docs'] }, // the glossary, the tables of SQL
    proxy: {
      '/api': { target: process.env.TT_SERVER_URL ?? 'http://127.0.0.1:8080', ws: true },
    },
  },
  test: {
    slowTestThreshold: 10_000, // ms; the log shows failures, not every test
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: TEST_MS } },
      { test: { name: 'layers', include: ['test/layers/**/*.test.ts'], testTimeout: TEST_MS } },
      {
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          testTimeout: TEST_MS,
          hookTimeout: TEST_MS,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.e2e.ts'],
          maxWorkers: 2, // each with a browser and a server
          testTimeout: TEST_MS,
          expect: { poll: { timeout: PATIENCE_MS } },
          hookTimeout: TEST_MS,
          // A busy CI machine may delay a frame by seconds. vitest reports each retry.
          retry: process.env.CI ? 1 : 0,
        },
      },
    ],
  },
});
