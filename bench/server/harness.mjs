// Shared code of the server benchmarks: server processes, streamed requests, live clients,
// medians. Uses only Node's built-in fetch and WebSocket.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { cpus, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const tree = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
// TT_BIN: another folder with the programs, so that a build does not replace them during a run.
export const program = (name) => join(process.env.TT_BIN ?? join(tree, 'build/release/bin'), name);
export const bundledModel = join(tree, 'tracer/modelgen/bundled/pocket.gguf');

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const now = () => performance.now(); // ms

// Parses "--rounds 5 --model x.gguf" over the defaults; values are converted to the type of the
// default.
export function options(defaults) {
  const chosen = { ...defaults };
  for (let i = 2; i < process.argv.length; i += 2) {
    const name = process.argv[i].replace(/^--/, '');
    if (!(name in defaults) || process.argv[i + 1] === undefined) {
      console.error(`options: ${Object.entries(defaults).map(([k, v]) => `--${k} ${v}`).join(' ')}`);
      process.exit(2);
    }
    const value = process.argv[i + 1];
    chosen[name] = typeof defaults[name] === 'number' ? Number(value) : value;
  }
  return chosen;
}

// Path of a model: an existing file, or a named shape of `tt model`, generated once in the
// temporary folder.
export function modelFile(model) {
  if (existsSync(model)) return model;
  const file = join(tmpdir(), `tt-bench-${model}.gguf`);
  if (!existsSync(file)) execFileSync(program('tt'), ['model', model, '-q', '-o', file]);
  return file;
}

// By nearest rank (docs/glossary.md).
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.ceil(q * sorted.length - 1e-9);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1];
}
export const median = (values) => quantile(values, 0.5);

export function machine() {
  return `${cpus().length} cores of ${cpus()[0].model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
}

// A server process; stop() waits until it has ended. `{data}` in `args` is replaced by a new
// temporary folder.
export class Server {
  constructor(program, args, env = {}) {
    this.data = mkdtempSync(join(tmpdir(), 'tt-bench-'));
    this.started = now();
    const full = args.map((arg) => arg.replace('{data}', this.data));
    this.child = spawn(program, full, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    this.output = '';
    for (const pipe of [this.child.stdout, this.child.stderr])
      pipe.on('data', (part) => (this.output = (this.output + part).slice(-20000)));
    this.ended = new Promise((resolve) => this.child.once('exit', resolve));
  }

  // Waits until `ready(url)` returns true; returns the milliseconds since the process started.
  async ready(url, ready) {
    for (;;) {
      if (this.child.exitCode !== null) throw new Error(`the server ended: ${this.output}`);
      try {
        this.url = typeof url === 'function' ? url(this.output) : url;
        if (this.url && (await ready(this.url))) return now() - this.started;
      } catch {
        // not listening yet
      }
      await sleep(2);
    }
  }

  // Anonymous memory in bytes; number of open descriptors.
  memory() {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    return Number(/RssAnon:\s+(\d+)/.exec(status)[1]) * 1024;
  }
  descriptors() {
    return readdirSync(`/proc/${this.child.pid}/fd`).length;
  }

  async stop() {
    if (this.child.exitCode === null) this.child.kill('SIGTERM');
    await this.ended;
    rmSync(this.data, { recursive: true, force: true });
  }
}

export async function startOurs(o, more = []) {
  const server = new Server(program('tt-server'), [
    '-m', modelFile(o.model), '-t', String(o.threads), '-c', String(o.context), '--port', '0',
    '--data-dir', '{data}', ...more,
  ]);
  server.loadMs = await server.ready(
    (output) => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0],
    async (url) => (await (await fetch(`${url}/api/v1/health`)).json()).model_state === 'loaded',
  );
  return server;
}

// Posts a request and calls `each(type, data)` for every server-sent event.
export async function stream(url, body, each) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  let rest = '';
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    rest += part;
    const events = rest.split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const type = /^event: ?(.*)$/m.exec(event)?.[1] ?? 'message';
      const data = /^data: ?(.*)$/m.exec(event)?.[1];
      if (data && data !== '[DONE]') each(type, JSON.parse(data));
    }
  }
}

// One generation request to tt-server: milliseconds to the first token, tokens per second after it.
export async function generate(url, body) {
  const started = now();
  const times = [];
  let session = '';
  await stream(`${url}/api/v1/generate`, { ...body, stream: true }, (type, data) => {
    session = data.session ?? session;
    if (type === 'token' && data.generated) times.push(now());
  });
  return { session, ...pace(started, times) };
}

export function pace(started, times) {
  return {
    firstMs: times[0] - started,
    tokensPerSecond: ((times.length - 1) * 1000) / (times.at(-1) - times[0]),
    tokens: times.length,
  };
}

// A live client that disappears: it subscribes to everything and resets its connection after `ms`
// without a close frame, while messages are in transit.
export async function vanishingClient(url, ms) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.write(
    'GET /api/v1/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  const text = Buffer.from(JSON.stringify({ type: 'subscribe', session: '*', kinds: ['token', 'op'] }));
  // One text frame with mask 0, which does not change the text.
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
  await sleep(ms);
  socket.resetAndDestroy();
}

// A live client that acknowledges messages. `reads: false`: it never acknowledges, which the
// server treats like a client that does not read.
export class LiveClient {
  constructor(url, { reads = true, onFrame = () => {} } = {}) {
    this.bytes = this.acked = 0;
    this.lost = 0;
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/live`);
    this.socket.binaryType = 'arraybuffer';
    this.closed = new Promise((resolve) => this.socket.addEventListener('close', resolve));
    this.socket.addEventListener('message', ({ data }) => {
      const text = typeof data === 'string';
      this.bytes += text ? Buffer.byteLength(data) : data.byteLength;
      if (text) {
        const message = JSON.parse(data);
        if (message.type === 'loss') this.lost += 1;
      } else {
        onFrame(data);
      }
      if (reads && this.bytes - this.acked >= 128 * 1024) {
        this.acked = this.bytes;
        this.socket.send(JSON.stringify({ type: 'ack', bytes: this.bytes }));
      }
    });
    this.open = new Promise((resolve, reject) => {
      this.socket.addEventListener('open', resolve);
      this.socket.addEventListener('error', reject);
    });
  }
  async subscribe(session, kinds) {
    await this.open;
    this.socket.send(JSON.stringify({ type: 'subscribe', session, kinds }));
  }
  async close() {
    this.socket.close();
    await this.closed;
  }
}
