// Tells a session while it runs, or again: node live.mjs ws://127.0.0.1:8080/api/v1/live SESSION
const [url, session] = process.argv.slice(2);
const socket = new WebSocket(url);
socket.binaryType = 'arraybuffer';
let [received, acked, ops] = [0, 0, 0];
const say = (command) => socket.send(JSON.stringify(command));
socket.onopen = () =>
  say({ type: 'subscribe', session, kinds: ['token', 'step', 'op'], from: {} });
socket.onmessage = ({ data }) => {
  received += typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength;
  if (received - acked >= 131072) say({ type: 'ack', bytes: (acked = received) });
  if (typeof data !== 'string') {
    const frame = new DataView(data); // kind 1: ops, flag 1: the step is complete; first + rows
    const complete = frame.getUint16(4, true) === 1 && frame.getUint16(6, true) & 1;
    if (complete) ops += frame.getUint32(16, true) + frame.getUint32(20, true);
    return;
  }
  const event = JSON.parse(data);
  if (event.type === 'token' || event.type === 'text') process.stdout.write(event.text);
  if (event.type === 'error' || ['done', 'cancelled', 'failed', 'recovered'].includes(event.state)) {
    console.log(`\n${event.state ?? event.detail}: ${ops} ops`);
    socket.close();
  }
};
