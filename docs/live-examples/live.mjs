// Tells a session while it runs, or again: node live.mjs ws://127.0.0.1:8080/api/v1/live SESSION
const [url, session] = process.argv.slice(2);
const socket = Object.assign(new WebSocket(url), { binaryType: 'arraybuffer' });
const say = (command) => socket.send(JSON.stringify(command));
let [received, acked, ops] = [0, 0, 0];
socket.onopen = () => say({ type: 'subscribe', session, kinds: ['token', 'step', 'op'], from: {} });
socket.onmessage = ({ data }) => {
  received += data.byteLength ?? Buffer.byteLength(data);
  if (received - acked >= 131072) say({ type: 'ack', bytes: (acked = received) });
  if (typeof data !== 'string') {
    const [kind, flags] = new Uint16Array(data, 4); // kind 1: ops, flag 1: the step is complete
    const [first, rows] = new Uint32Array(data, 16);
    return (ops += kind === 1 && flags & 1 ? first + rows : 0);
  }
  const { type, text, state, detail } = JSON.parse(data);
  if (type === 'token' || type === 'text') process.stdout.write(text);
  if (type !== 'error' && (type !== 'state' || ['queued', 'running'].includes(state))) return;
  console.log(`\n${state ?? detail}: ${ops} ops`);
  socket.close();
};
