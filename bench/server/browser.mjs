// Headless Chromium with one page of 1440x900, over the DevTools protocol: only the domains that the
// caller enables are active.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from './harness.mjs';

export async function startBrowser(executable) {
  const profile = mkdtempSync(join(tmpdir(), 'tt-browser-'));
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking',
    '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank'];
  const child = spawn(executable, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  // The program can be a script that starts Chromium: the pipe ends with Chromium.
  const exited = new Promise((done) => { child.stdio[4].once('close', done); });
  const call = protocol(child.stdio[3], child.stdio[4]);
  const send = (method, params) => call(method, params);

  const targetId = await firstPage(send);
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const sendToPage = (method, params) => call(method, params, sessionId);
  const screen = { width: 1440, height: 900, deviceScaleFactor: 1, mobile: false };
  await sendToPage('Emulation.setDeviceMetricsOverride', screen);
  await sendToPage('Emulation.setFocusEmulationEnabled', { enabled: true });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await sendToPage('Runtime.evaluate', { expression, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const page = {
    send: sendToPage,
    evaluate,
    // Waits until the expression `isReady` is true in the new document.
    open: async (url, isReady) => {
      await sendToPage('Page.navigate', { url });
      while (!(await evaluate(`location.href.startsWith('${url}') && ${isReady}`))) await sleep(50);
    },
    press: async (key) => {
      for (const type of ['keyDown', 'keyUp']) await sendToPage('Input.dispatchKeyEvent', { type, key, text: type === 'keyDown' ? key : undefined });
    },
  };
  const close = async () => {
    await send('Browser.close');
    await exited;
    rmSync(profile, { recursive: true, force: true });
  };
  return { page, send, close };
}

// Messages are JSON, each ended by a zero byte.
function protocol(input, output) {
  const pending = new Map();
  let received = '';
  output.setEncoding('utf8');
  output.on('data', (part) => {
    const messages = (received + part).split('\0');
    received = messages.pop();
    for (const { id, result, error } of messages.map((text) => JSON.parse(text))) {
      if (error) pending.get(id)?.reject(new Error(error.message));
      else pending.get(id)?.resolve(result);
      pending.delete(id);
    }
  });
  let last = 0;
  return (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      pending.set(id, { resolve, reject });
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
}

async function firstPage(send) {
  for (;;) {
    const { targetInfos } = await send('Target.getTargets');
    const page = targetInfos.find(({ type }) => type === 'page');
    if (page) return page.targetId;
    await sleep(50);
  }
}
