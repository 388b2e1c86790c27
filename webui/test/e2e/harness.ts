// Starts the server under test and a browser before it.
//   TT_SERVER    the tt-server program (needed)
//   TT_SERVER_ARGS  more arguments, for instance `-m model.gguf`
//   TT_CHROMIUM  the browser, /usr/bin/chromium if not given
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';

export interface Server {
  readonly url: string;
  readonly link: string; // what it printed: the url, where a key is needed with a login link
  readonly data: string; // its folder of sessions
  // Ends the program, and starts it again at the same place with the same
  // sessions.
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

const START_MS = 90_000;
// A line per request would bury what a failed test says.
const QUIET = ['--log-level', 'error'];

// With a folder of its own for sessions, that goes when it is stopped.
export async function startServer(args: readonly string[] = []): Promise<Server> {
  const program = process.env.TT_SERVER;
  if (!program) throw new Error('TT_SERVER names no tt-server program');
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
      child = start(port);
      await addressOf(child);
    };
    return { url: origin, link, data, pause: () => ended(child), resume, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    const timer = setTimeout(() => {
      reject(new Error(`the server printed no address in ${START_MS} ms; it said: ${said}`));
    }, START_MS);
    child.stdout?.on('data', (part: Buffer) => {
      said += part.toString();
      const address = /^(http:\/\/\S+)\n/.exec(said);
      if (!address) return;
      clearTimeout(timer);
      resolve(address[1] ?? '');
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      reject(new Error(`the server ended with ${code ?? 'a signal'}; it said: ${said}`));
    });
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const exit = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
  });
  child.kill('SIGTERM');
  await exit;
}

export function startBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.TT_CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--headless',
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
