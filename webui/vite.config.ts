import { defineConfig } from 'vitest/config';

// The page is served by tt-server from any path and without a network: relative
// URLs, and nothing inlined, so that the policy `default-src 'self'` holds.
export default defineConfig({
  base: './',
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    license: { fileName: 'licenses.txt' }, // of what is bundled, as they ask
    // The second page is what tt-server serves at /api/docs.
    rolldownOptions: { input: { index: 'index.html', docs: 'docs/index.html' } },
    chunkSizeWarningLimit: 2048, // kB: Swagger UI, which only that page loads
  },
  // `npm run dev` serves the sources and asks a running tt-server for the rest.
  server: {
    proxy: {
      '/api': { target: process.env.TT_SERVER_URL ?? 'http://127.0.0.1:8080', ws: true },
    },
  },
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 60_000 } },
      {
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.e2e.ts'],
          fileParallelism: false,
          testTimeout: 60_000,
          expect: { poll: { timeout: 10_000 } },
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
