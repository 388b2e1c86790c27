// A client based on Node's fetch and WebSocket. Argument: port. Prints "ok".
import assert from 'node:assert/strict';

const port = process.argv[2];
const base = `http://127.0.0.1:${port}`;

for (let i = 0; i < 20; ++i) {
  const response = await fetch(`${base}/hello`);
  assert.equal(response.status, 200);
  assert.equal(await response.text(), 'hello');
}
const body = 'x'.repeat(300_000);
const echoed = await fetch(`${base}/echo`, { method: 'POST', body });
assert.equal(await echoed.text(), body);

const socket = new WebSocket(`ws://127.0.0.1:${port}/api/v1/live?from=node`);
socket.binaryType = 'arraybuffer';
const next = () =>
  new Promise((resolve, reject) => {
    socket.onmessage = (event) => resolve(event.data);
    socket.onclose = () => reject(new Error('closed'));
    socket.onerror = () => reject(new Error('error'));
  });
await new Promise((resolve, reject) => {
  socket.onopen = resolve;
  socket.onerror = () => reject(new Error('no WebSocket'));
});
for (const text of ['', 'a', 'grüße', 'y'.repeat(200_000)]) {
  const answer = next();
  socket.send(text);
  assert.equal(await answer, text);
}
const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i % 251);
const answer = next();
socket.send(bytes);
assert.deepEqual(new Uint8Array(await answer), bytes);
const closed = new Promise((resolve) => (socket.onclose = resolve));
socket.close(1000);
assert.equal((await closed).code, 1000);

// An upgrade of an unknown path is rejected over HTTP.
const other = new WebSocket(`ws://127.0.0.1:${port}/other`);
await new Promise((resolve) => (other.onerror = resolve));
console.log('ok');
