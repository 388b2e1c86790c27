#!/usr/bin/env node
// Stands in for tt-server while the page is worked on without one: the same
// HTTP and live interface over generated data. Serves the built page from
// TT_WEBUI_DIST. Usage: tt-server.mjs --port 0
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const port = Number(process.argv[process.argv.indexOf('--port') + 1] || 0);
const dist = process.env.TT_WEBUI_DIST ?? 'dist';
const stepMs = Number(process.env.MOCK_STEP_MS ?? 45);
const loadMs = Number(process.env.MOCK_LOAD_MS ?? 0);
const LAYERS = Number(process.env.MOCK_LAYERS ?? 22);
const started = Date.now();

const words =
  ` The memory of a running model is read from front to back : first the embedding of the token , then the weights of every layer , and at last the output matrix . A quantized weight is small , so the time that it takes is the time of the bus . When the model reads a prompt , many tokens share one pass over the weights ; when it answers , each token pays for the whole pass alone . That is why a long answer costs more than a long question .`.match(
    / \S+/g,
  ) ?? [];

const OPS = ops();
function ops() {
  const list = [];
  const add = (
    name,
    tensor,
    layer,
    component,
    role,
    shape,
    sources,
    us,
    read,
    written,
    type = 'F32',
  ) =>
    list.push({
      name,
      tensor,
      layer,
      component,
      role,
      shape,
      sources,
      us,
      read,
      written,
      type,
      nodes: name === 'RMS_NORM' ? 2 : 1,
    });
  const w = (tensor, type, shape) => ({ tensor, type, shape, kind: 'weight', source: 'disk' });
  const t = (tensor) => ({
    tensor,
    type: 'F32',
    shape: [2048, 1, 1, 1],
    kind: 'intermediate',
    source: 'compute',
  });
  add(
    'GET_ROWS',
    'embd',
    null,
    'embedding',
    'token',
    [2048, 1, 1, 1],
    [
      w('token_embd.weight', 'Q4_K', [2048, 32000, 1, 1]),
      { tensor: 'inp_tokens', type: 'I32', shape: [1, 1, 1, 1], kind: 'input', source: 'input' },
    ],
    3,
    1152,
    8192,
  );
  for (let i = 0; i < LAYERS; i += 1) {
    const b = `blk.${i}.`;
    const six = i < 3 || i > 18 || i % 3 === 0;
    add(
      'RMS_NORM',
      `attn_norm-${i}`,
      i,
      'norm',
      'attention norm',
      [2048, 1, 1, 1],
      [t(i ? `l_out-${i - 1}` : 'embd'), w(`${b}attn_norm.weight`, 'F32', [2048, 1, 1, 1])],
      5,
      16384,
      8192,
    );
    add(
      'MUL_MAT',
      `Qcur-${i}`,
      i,
      'attention',
      'Q',
      [2048, 1, 1, 1],
      [w(`${b}attn_q.weight`, 'Q4_K', [2048, 2048, 1, 1]), t(`attn_norm-${i}`)],
      190,
      2367488,
      8192,
    );
    add(
      'ROPE',
      `Qcur_rope-${i}`,
      i,
      'attention',
      'Q',
      [64, 32, 1, 1],
      [t(`Qcur-${i}`), { ...t('inp_pos'), kind: 'input', source: 'input' }],
      6,
      8196,
      8192,
    );
    add(
      'MUL_MAT',
      `Vcur-${i}`,
      i,
      'attention',
      'V',
      [256, 1, 1, 1],
      [w(`${b}attn_v.weight`, six ? 'Q6_K' : 'Q4_K', [2048, 256, 1, 1]), t(`attn_norm-${i}`)],
      six ? 41 : 26,
      six ? 438272 : 303104,
      1024,
    );
    add(
      'MUL_MAT',
      `Kcur-${i}`,
      i,
      'attention',
      'K',
      [256, 1, 1, 1],
      [w(`${b}attn_k.weight`, 'Q4_K', [2048, 256, 1, 1]), t(`attn_norm-${i}`)],
      26,
      303104,
      1024,
    );
    add(
      'ROPE',
      `Kcur_rope-${i}`,
      i,
      'attention',
      'K',
      [64, 4, 1, 1],
      [t(`Kcur-${i}`)],
      3,
      1028,
      1024,
    );
    add(
      'SET_ROWS',
      `cache_k_l${i} (view)`,
      i,
      'kv-cache',
      'K',
      [256, 512, 1, 1],
      [t(`Kcur_rope-${i}`)],
      2,
      1032,
      512,
      'F16',
    );
    add(
      'SET_ROWS',
      `cache_v_l${i} (view)`,
      i,
      'kv-cache',
      'V',
      [1, 131072, 1, 1],
      [t(`Vcur-${i}`)],
      4,
      3072,
      512,
      'F16',
    );
    add(
      'MUL_MAT',
      `kq-${i}`,
      i,
      'attention',
      'KQ',
      [256, 1, 32, 1],
      [{ ...t(`cache_k_l${i}`), kind: 'kv', type: 'F16', source: 'kv' }, t(`Qcur_rope-${i}`)],
      18,
      139264,
      32768,
    );
    add(
      'SOFT_MAX',
      `kq_soft_max-${i}`,
      i,
      'attention',
      'KQ',
      [256, 1, 32, 1],
      [t(`kq-${i}`), { ...t('KQ_mask'), kind: 'input', source: 'input' }],
      14,
      33792,
      32768,
    );
    add(
      'MUL_MAT',
      `kqv-${i}`,
      i,
      'attention',
      'KQV',
      [64, 1, 32, 1],
      [{ ...t(`cache_v_l${i}`), kind: 'kv', type: 'F16', source: 'kv' }, t(`kq_soft_max-${i}`)],
      21,
      163840,
      8192,
    );
    add(
      'CONT',
      `kqv_out-${i}`,
      i,
      'attention',
      'KQV',
      [2048, 1, 1, 1],
      [t(`kqv-${i}`)],
      3,
      8192,
      8192,
    );
    add(
      'MUL_MAT',
      `attn_out-${i}`,
      i,
      'attention',
      'O',
      [2048, 1, 1, 1],
      [w(`${b}attn_output.weight`, 'Q4_K', [2048, 2048, 1, 1]), t(`kqv_out-${i}`)],
      188,
      2367488,
      8192,
    );
    add(
      'ADD',
      `ffn_inp-${i}`,
      i,
      'attention',
      'residual',
      [2048, 1, 1, 1],
      [t(`attn_out-${i}`), t('embd')],
      3,
      16384,
      8192,
    );
    add(
      'RMS_NORM',
      `ffn_norm-${i}`,
      i,
      'norm',
      'ffn norm',
      [2048, 1, 1, 1],
      [t(`ffn_inp-${i}`), w(`${b}ffn_norm.weight`, 'F32', [2048, 1, 1, 1])],
      5,
      16384,
      8192,
    );
    add(
      'MUL_MAT',
      `ffn_gate-${i}`,
      i,
      'ffn',
      'gate',
      [5632, 1, 1, 1],
      [w(`${b}ffn_gate.weight`, 'Q4_K', [2048, 5632, 1, 1]), t(`ffn_norm-${i}`)],
      510,
      6496256,
      22528,
    );
    add(
      'MUL_MAT',
      `ffn_up-${i}`,
      i,
      'ffn',
      'up',
      [5632, 1, 1, 1],
      [w(`${b}ffn_up.weight`, 'Q4_K', [2048, 5632, 1, 1]), t(`ffn_norm-${i}`)],
      505,
      6496256,
      22528,
    );
    add(
      'GLU',
      `ffn_swiglu-${i}`,
      i,
      'ffn',
      'gate',
      [5632, 1, 1, 1],
      [t(`ffn_gate-${i}`), t(`ffn_up-${i}`)],
      9,
      45056,
      22528,
    );
    add(
      'MUL_MAT',
      `ffn_out-${i}`,
      i,
      'ffn',
      'down',
      [2048, 1, 1, 1],
      [w(`${b}ffn_down.weight`, six ? 'Q6_K' : 'Q4_K', [5632, 2048, 1, 1]), t(`ffn_swiglu-${i}`)],
      six ? 760 : 520,
      six ? 9484288 : 6510592,
      8192,
    );
    add(
      'ADD',
      `l_out-${i}`,
      i,
      'ffn',
      'residual',
      [2048, 1, 1, 1],
      [t(`ffn_out-${i}`), t(`ffn_inp-${i}`)],
      3,
      16384,
      8192,
    );
  }
  add(
    'RMS_NORM',
    'result_norm',
    null,
    'norm',
    'output norm',
    [2048, 1, 1, 1],
    [t(`l_out-${LAYERS - 1}`), w('output_norm.weight', 'F32', [2048, 1, 1, 1])],
    6,
    16384,
    8192,
  );
  add(
    'MUL_MAT',
    'result_output',
    null,
    'output',
    'output',
    [32000, 1, 1, 1],
    [w('output.weight', 'Q6_K', [2048, 32000, 1, 1]), t('result_norm')],
    4300,
    53760000,
    128000,
  );
  return list;
}

let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;

const sessions = new Map();
let queue = [];
let running = null;

function stepOf(session, index, first, n, begin) {
  const phase = index === 0 ? 'prompt' : 'generate';
  const cold = index === 0 ? 2.2 : 1;
  const jitter = 0.9 + 0.25 * random() + (random() > 0.97 ? 1.2 : 0);
  let at = begin;
  const times = OPS.map((op) => {
    const scale = phase === 'prompt' ? (op.read > 1e5 ? 0.55 * n : n) : 1;
    const ns = Math.max(
      400,
      Math.round(op.us * 1000 * (0.85 + 0.3 * random()) * scale * cold * jitter),
    );
    const row = [at, at + ns];
    at += ns;
    return row;
  });
  const ns = new Array(LAYERS + 1).fill(0);
  const bytes = new Array(LAYERS + 1).fill(0);
  OPS.forEach((op, i) => {
    const row = op.layer ?? LAYERS;
    ns[row] += times[i][1] - times[i][0];
    bytes[row] += op.read + op.written * n;
  });
  return {
    times,
    summary: {
      step: index,
      phase,
      timing: session.exact ? 'exact' : index < 2 ? 'learned' : 'fast',
      template: phase === 'prompt' ? 1 : 2 + Math.floor(first / 256),
      begin_ns: begin,
      end_ns: at,
      first_token: first,
      n_tokens: n,
      ops: OPS.length,
      accesses: 1250,
      bytes_read: bytes.reduce((a, b) => a + b),
      bytes_written: 3200000 * n,
      dropped: false,
      aborted: false,
      layers: { ns, bytes },
    },
  };
}

function create(request) {
  const id = createHash('sha1').update(String(Math.random())).digest('hex').slice(0, 12);
  const text = request.prompt ?? request.messages?.map((m) => m.content).join('\n') ?? 'tokens';
  const prompt = request.tokens
    ? request.tokens.map((t) => ` <${t}>`)
    : (text.match(/\s*\S+/g) ?? [text]);
  const session = {
    id,
    title: text.slice(0, 80),
    request,
    state: 'queued',
    exact: request.timing === 'exact',
    start: Date.now(),
    tokens: [{ index: 0, id: 1, position: 0, generated: false, reused: false, text: '<s>' }],
    steps: [],
    prompt,
    generated: 0,
    stop: null,
    max: request.max_tokens,
  };
  prompt.forEach((piece, i) =>
    session.tokens.push({
      index: i + 1,
      id: 300 + piece.length * 7 + i,
      position: i + 1,
      generated: false,
      reused: false,
      text: piece,
    }),
  );
  sessions.set(id, session);
  queue.push(session);
  setImmediate(next);
  return session;
}

function next() {
  if (running || queue.length === 0) return;
  running = queue.shift();
  void generate(running).then(() => {
    running = null;
    next();
  });
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function generate(session) {
  const set = (state, stop = null) => {
    session.state = state;
    session.stop = stop;
    send(session, null, { type: 'state', session: session.id, state, position: 0, error: null });
  };
  set('running');
  let clock = 1e6;
  for (let index = 0; ; index += 1) {
    if (session.cancel) return set('cancelled', 'cancelled');
    const n = index === 0 ? session.tokens.length : 1;
    const first = index === 0 ? 0 : session.tokens.length - 1;
    const step = stepOf(session, index, first, n, clock);
    const parts = 4;
    for (let p = 0; p < parts; p += 1) {
      await wait((stepMs / parts) * (index === 0 ? 6 : 1));
      const from = Math.floor((OPS.length * p) / parts),
        to = Math.floor((OPS.length * (p + 1)) / parts);
      sendOps(session, index, from, step.times.slice(from, to), p === parts - 1);
      if (index === 0) progress(session, Math.round((n * (p + 1)) / parts));
      if (session.cancel) return set('cancelled', 'cancelled');
    }
    clock = step.summary.end_ns + 20000;
    session.steps.push(step);
    send(session, 'step', { type: 'step', session: session.id, ...step.summary });
    if (session.generated >= session.max) return set('done', 'length');
    const word = words[session.generated % words.length];
    const token = {
      index: session.tokens.length,
      id: 1000 + ((word.length * 131 + session.generated) % 30000),
      position: session.tokens.length,
      generated: true,
      reused: false,
      text: word,
    };
    session.tokens.push(token);
    session.generated += 1;
    send(session, 'token', { type: 'token', session: session.id, ...token });
    progress(session, session.prompt.length + 1);
  }
}

function progress(session, prompt_done) {
  session.prompt_done = prompt_done;
  send(session, 'progress', {
    type: 'progress',
    session: session.id,
    prompt_done,
    prompt_tokens: session.prompt.length + 1,
    generated: session.generated,
    max_tokens: session.max,
  });
}

const status = (s) => ({
  id: s.id,
  state: s.state,
  position: queue.indexOf(s) + 1,
  prompt_tokens: s.prompt.length + 1,
  prompt_done: s.prompt_done ?? 0,
  generated: s.generated,
  max_tokens: s.max,
  text: s.tokens
    .filter((t) => t.generated)
    .map((t) => t.text)
    .join(''),
  stop_reason: s.stop,
  error: null,
});
const info = (s) => ({
  id: s.id,
  title: s.title,
  state: s.state === 'queued' ? 'recording' : s.state === 'running' ? 'recording' : 'done',
  error: null,
  start_utc_ns: s.start * 1e6,
  level: s.request.level ?? 'detailed',
  exact_timing: s.exact,
  model: { path: '/models/tinyllama.gguf', size: 667000000 },
  n_layers: LAYERS,
  n_heads: 32,
  n_heads_kv: 4,
  n_embd: 2048,
  n_vocab: 32000,
  n_experts: 0,
  n_experts_used: 0,
  steps: s.steps.length,
  tokens: s.tokens.length,
  file_bytes: 90000 + s.steps.length * 2600,
  losses: { steps_dropped: 0 },
  facts: { 'model.architecture': 'llama' },
});

const opJson = (step, i) => {
  const { read, written, ...op } = OPS[i];
  return {
    op: i,
    ...op,
    device: 'CPU',
    begin_ns: step.times[i][0],
    end_ns: step.times[i][1],
    bytes_read: read,
    bytes_written: written,
  };
};
function accesses(i) {
  const op = OPS[i];
  const of = (s, write, bytes) => ({
    op: i,
    tensor: s.tensor,
    kind: s.kind,
    write,
    bytes,
    source: s.source,
    file: s.kind === 'weight' ? { index: 0, offset: 1_234_567_000 + i * 77, length: bytes } : null,
    address: s.kind === 'weight' ? null : '0x7f3a5c0012' + i.toString(16),
    layer: op.layer,
    component: op.component,
    role: op.role,
    category: 'layer',
    expert: null,
    rank: null,
    score: null,
  });
  return [
    ...op.sources.map((s) => of(s, false, s.kind === 'weight' ? op.read : 8192)),
    of({ tensor: op.tensor, kind: 'intermediate', source: 'compute' }, true, op.written),
  ];
}

// ---- HTTP ---------------------------------------------------------------------

const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const server = createServer(async (req, res) => {
  const url = new URL(req.url, 'http://x');
  const json = (code, body) => {
    res.writeHead(code, {
      'content-type': code < 400 ? 'application/json' : 'application/problem+json',
    });
    res.end(JSON.stringify(body));
  };
  const missing = () =>
    json(404, {
      title: 'Not found',
      status: 404,
      code: 'not_found',
      detail: 'There is no such session.',
    });
  const path = url.pathname.replace('/api/v1/', '').split('/');
  const page = (list, key, extra = {}) => {
    const from = Number(url.searchParams.get('from') ?? 0),
      limit = Number(url.searchParams.get('limit') ?? 100);
    json(200, { total: list.length, [key]: list.slice(from, from + limit), ...extra });
  };
  if (!url.pathname.startsWith('/api/')) {
    try {
      const file = join(dist, normalize(url.pathname === '/' ? '/index.html' : url.pathname));
      res.writeHead(200, {
        'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
        'content-security-policy': "default-src 'self'",
      });
      res.end(await readFile(file));
    } catch {
      res.writeHead(404);
      res.end();
    }
    return;
  }
  const load = loadMs ? Math.min(1, (Date.now() - started) / loadMs) : 1;
  const session = sessions.get(path[1]);
  switch (path[0]) {
    case 'health':
      return json(200, {
        status: load < 1 ? 'loading' : 'ok',
        version: '0.1.0',
        model: 'tinyllama-1.1b',
        load_progress: load,
      });
    case 'models':
      return json(200, {
        models: [
          {
            name: 'tinyllama-1.1b-q4_k_m',
            path: '/models/tinyllama.gguf',
            size_bytes: 667814368,
            state: load < 1 ? 'loading' : 'loaded',
            load_progress: load,
            error: null,
            ...(load < 1
              ? {}
              : {
                  description: 'llama 1B Q4_K - Medium',
                  architecture: 'llama',
                  n_layers: LAYERS,
                  n_embd: 2048,
                  n_heads: 32,
                  n_heads_kv: 4,
                  n_experts: 0,
                  n_experts_used: 0,
                  n_vocab: 32000,
                  context: 2048,
                  has_vocabulary: true,
                  has_chat_template: true,
                  has_encoder: false,
                  threads: 2,
                }),
          },
        ],
      });
    case 'generate': {
      if (req.method === 'POST') {
        let body = '';
        for await (const part of req) body += part;
        const request = JSON.parse(body);
        if (request.prompt === 'bad')
          return json(422, {
            title: 'The prompt is too long',
            status: 422,
            code: 'bad_prompt',
            detail:
              'It has 4 096 tokens, the context holds 2 048. Start tt-server with a larger -c.',
          });
        const made = create(request);
        return json(202, { id: made.id, state: 'queued', position: queue.length });
      }
      if (!session) return missing();
      if (req.method === 'DELETE') {
        session.cancel = true;
        return json(202, status(session));
      }
      return json(200, status(session));
    }
    case 'sessions': {
      if (path.length === 1) {
        const all = [...sessions.values()].reverse().map(info);
        const offset = Number(url.searchParams.get('offset') ?? 0),
          limit = Number(url.searchParams.get('limit') ?? 50);
        return json(200, { total: all.length, sessions: all.slice(offset, offset + limit) });
      }
      if (!session) return missing();
      if (path.length === 2) return json(200, info(session));
      if (path[2] === 'tokens') return page(session.tokens, 'tokens');
      const step = session.steps[Number(path[3])];
      if (path[2] === 'steps' && path.length === 3)
        return page(
          session.steps.map((s) => s.summary),
          'steps',
        );
      if (!step) return missing();
      if (path[4] === 'ops')
        return page(
          OPS.map((_, i) => opJson(step, i)),
          'ops',
        );
      if (path[4] === 'accesses')
        return page(accesses(Number(url.searchParams.get('op'))), 'accesses');
    }
  }
  missing();
});

// ---- Live -----------------------------------------------------------------------

const clients = new Set();
server.on('upgrade', (req, socket) => {
  const accept = createHash('sha1')
    .update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
    .digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  const client = { socket, subs: new Map(), n: 0 };
  clients.add(client);
  frame(client, JSON.stringify({ type: 'hello', protocol: 1, server: 'tensor-trace 0.1.0' }));
  let held = Buffer.alloc(0);
  socket.on('data', (data) => {
    held = Buffer.concat([held, data]);
    while (held.length >= 6) {
      let size = held[1] & 127,
        at = 2;
      if (size === 126) {
        size = held.readUInt16BE(2);
        at = 4;
      }
      if (held.length < at + 4 + size) return;
      const mask = held.subarray(at, at + 4),
        body = Buffer.from(held.subarray(at + 4, at + 4 + size));
      body.forEach((b, i) => {
        body[i] = b ^ mask[i & 3];
      });
      const opcode = held[0] & 15;
      held = held.subarray(at + 4 + size);
      if (opcode === 8) return socket.end();
      if (opcode === 1) receive(client, JSON.parse(body.toString()));
    }
  });
  const gone = () => clients.delete(client);
  socket.on('close', gone);
  socket.on('error', gone);
});
function receive(client, message) {
  if (message.type === 'unsubscribe') return client.subs.delete(message.session);
  client.n += 1;
  client.subs.set(message.session, { kinds: message.kinds, number: client.n });
  frame(
    client,
    JSON.stringify({
      type: 'subscribed',
      session: message.session,
      kinds: message.kinds,
      number: client.n,
    }),
  );
}
function frame(client, data) {
  const body = Buffer.from(data),
    head = Buffer.alloc(body.length < 126 ? 2 : body.length < 65536 ? 4 : 10);
  head[0] = 0x80 | (typeof data === 'string' ? 1 : 2);
  if (head.length === 2) head[1] = body.length;
  else if (head.length === 4) {
    head[1] = 126;
    head.writeUInt16BE(body.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(body.length), 2);
  }
  client.socket.write(Buffer.concat([head, body]));
}
function send(session, kind, message) {
  for (const client of clients) {
    const sub = client.subs.get(session.id);
    if (sub && (kind === null || sub.kinds.includes(kind))) frame(client, JSON.stringify(message));
  }
}
function sendOps(session, step, first, times, complete) {
  for (const client of clients) {
    const sub = client.subs.get(session.id);
    if (!sub?.kinds.includes('op')) continue;
    const rows = times.length,
      ids = (4 * rows + 7) & ~7,
      body = Buffer.alloc(32 + ids + 16 * rows);
    body.writeUInt32LE(0x31465454, 0);
    body.writeUInt16LE(1, 4);
    body.writeUInt16LE(complete ? 1 : 0, 6);
    body.writeUInt32LE(sub.number, 8);
    body.writeUInt32LE(step, 12);
    body.writeUInt32LE(first, 16);
    body.writeUInt32LE(rows, 20);
    times.forEach(([begin, end], i) => {
      body.writeUInt32LE(first + i, 32 + 4 * i);
      body.writeDoubleLE(begin, 32 + ids + 8 * i);
      body.writeDoubleLE(end, 32 + ids + 8 * rows + 8 * i);
    });
    frame(client, body);
  }
}

server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
