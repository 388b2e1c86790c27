// Starts the server under test and a browser. Environment variables:
//   TT_SERVER       the tt-server program (required)
//   TT_SERVER_ARGS  further arguments, for example `-m model.gguf`
//   TT_CHROMIUM     the browser, default /usr/bin/chromium-headless-shell
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';
import { PATIENCE_MS } from '../../patience';

export interface Server {
  readonly url: string;
  readonly link: string; // the printed URL; the login link if a login is required
  readonly data: string; // the session folder
  // Terminate the program, and start it again with the same port and sessions, if it ended.
  pause(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

// Log lines of requests would hide the output of failed tests.
const QUIET = ['--log-level', 'error'];

// Starts a server with a temporary session folder, which stop() deletes.
export async function startServer(args: readonly string[] = []): Promise<Server> {
  const program = process.env.TT_SERVER;
  if (!program) throw new Error('set TT_SERVER to the tt-server program');
  const data = await mkdtemp(join(tmpdir(), 'tt-webui-'));
  const more = (process.env.TT_SERVER_ARGS ?? '').split(' ').filter(Boolean);
  const start = (port: string): ChildProcess =>
    spawn(program, ['--port', port, '--data-dir', data, '-t', '1', ...QUIET, ...more, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  let child = start('0');
  const stop = async (): Promise<void> => {
    await ended(child);
    await rm(data, { recursive: true, force: true });
  };
  try {
    const link = await addressOf(child);
    const { origin, port } = new URL(link);
    const resume = async (): Promise<void> => {
      if (child.exitCode === null && child.signalCode === null) return;
      child = start(port);
      await addressOf(child);
    };
    return { url: origin, link, data, pause: (signal) => ended(child, signal), resume, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

// A port that another program may listen on.
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const timer = setTimeout(() => {
      reject(
        new Error(`the server printed no address within ${PATIENCE_MS} ms; output: ${output}`),
      );
    }, PATIENCE_MS);
    child.stdout?.on('data', (part: Buffer) => {
      output += part.toString();
      const address = /^(http:\/\/\S+)\n/.exec(output);
      if (!address) return;
      clearTimeout(timer);
      resolve(address[1] ?? '');
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      reject(new Error(`the server exited with ${code ?? 'a signal'}; output: ${output}`));
    });
  });
}

async function ended(
  child: ChildProcess,
  signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM',
): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const exit = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
  });
  child.kill(signal);
  await exit;
}

export function startBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.TT_CHROMIUM ?? '/usr/bin/chromium-headless-shell',
    headless: process.env.HEADED === undefined, // HEADED=1: a visible window; needs chromium
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  });
}
