// What the operations of the contract are requested with, and the responses that no request of the
// test can produce.
import { readContract } from './document';
import type { TextByName, ValuesByName } from './probes';

export const DENSE = 'pocket';
export const PROMPT = { prompt: 'Once upon a time', max_tokens: 2, residency_interval_ms: 0 };
// What the sessions of the test captured: of every model and prompt in the same shape.
export const CAPTURE = { capture: ['^embd$@S0@R1@K4'] };
const NAME = 'embd.top';
const CAPTURED = { step: '0', op: '0', tensor: NAME };

const WEIGHT = { name: 'blk.0.attn_q.weight' };

// Query parameters that an operation needs.
export const QUERIES: Readonly<Record<string, TextByName>> = {
  login: { code: 'any' },
  comparisonWithin: { left_token: '0', right_token: '1' },
  comparedValuesPicture: CAPTURED,
  tensorWeights: WEIGHT,
  weightsPicture: WEIGHT,
  weightsValue: WEIGHT,
  weightsErrors: { reference: DENSE },
  tensorErrors: { ...WEIGHT, reference: DENSE },
  weightsMix: { bytes: String(Number.MAX_SAFE_INTEGER), rows: '1' },
};

const LAYERS = { layers: ['all', 'outside', '0', '1,0-1,outside'] };

// Values by operation, for parameters and fields that a schema cannot describe. Fields of `generate`
// that exclude each other are omitted and have a separate test.
export const VALUES: Readonly<Record<string, ValuesByName>> = {
  accesses: { cursor: [], layer: [0, 'outside', 'none'] }, // cursors have a separate test
  ...Object.fromEntries(
    readContract()
      .operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'layers'))
      .map(({ id }) => [id, LAYERS]),
  ),
  ...Object.fromEntries(
    ['tensors', 'ops', 'stepAccesses', 'expertTokens'].map((id) => [
      id,
      { layer: [0, 'outside', 'none'] },
    ]),
  ),
  attentionWeights: { layer: [0, 1], head: [0, 1], token: [0, 1] },
  attentionTokens: { layer: [0, 1], head: [0, 1], from_token: [0, 1], to_token: [1, 2] },
  capturedValues: { step: [0], layer: [0, 'outside', 'none'], output: [NAME] },
  capturedOutput: { output: [NAME] },
  capturedFile: { output: [NAME] },
  capturedFiles: { step: [0] },
  capturedPicture: {
    output: [NAME],
    x_from: [0, 1],
    x_to: [1, 2],
    y_from: [0],
    y_to: [1, 2],
  },
  lens: { layer: [0, 'outside', 'none'], token: [0, 1] },
  expertTokenMargins: { layer: [0, 'outside', 'none'], token: [0, 1] },
  channels: { layer: [0, 'outside', 'none'], output: [] }, // rows of the largest values have no channels
  export: { first_step: [0, 1] },
  report: { compare: [] }, // another session, in exports.e2e.ts
  generate: {
    model: [DENSE],
    prompt: ['a', 'ä\u0000 \u{1f600}'],
    messages: [],
    tokens: [],
    grammar: ['', 'root ::= "a" | "b"'],
    samplers: [[], ['top_k', 'min-p', 'temp'], 'edskypmxta', ''],
    dry_sequence_breakers: [['\n'], Array.from({ length: 32 }, () => 'x'.repeat(40))],
    logit_bias: [
      [],
      [
        [5, 1.5],
        ['the', false],
      ],
      {},
      { 5: -10_000, the: 10_000 },
    ],
    stop: [[], ['a', 'ä'], Array.from({ length: 32 }, (_, i) => `stop ${i}`)],
    stats_pattern: ['', 'attn.*'],
  },
  // A command has one field; the others have a separate test.
  debug: { until: [], count: [], break: [], delete: [], change: [], keep: [], release: [] },
  comparedValuesPicture: { step: [0], op: [0], tensor: [NAME] },
  // The number of the stop is not known here.
  debugValues: { tensor: ['output'], indices: ['', '0', '*'], stop: [] },
  // The layer has one router; the session has only these phases.
  expertLayer: { router: [0], phase: ['prompt', 'generate'] },
  // The other pairs exclude this one and have a separate test.
  comparisonWithin: {
    ...LAYERS,
    ...Object.fromEntries(
      ['token', 'step', 'layer'].flatMap((axis) => [
        [`left_${axis}`, axis === 'token' ? [0, 1] : []],
        [`right_${axis}`, axis === 'token' ? [0, 1] : []],
      ]),
    ),
  },
  setMemory: { budget: ['off'] }, // a budget has a separate test, because it loads the model again
  reuse: { sizes: ['', '0', '1000,9007199254740991'] },
  query: {
    sql: ['SELECT 1', 'SELECT * FROM access', "SELECT 'ä' -- \u{1f600}"],
    timeout_ms: [60_000], // with a shorter timeout the result depends on the machine
  },
  setQuery: {
    sessions: [{}, { state: 'done', q: DENSE }],
    sql: ['SELECT session FROM step', 'SELECT * FROM session'],
    timeout_ms: [60_000],
  },
  // Names of tensors, and places in this one: others have separate tests.
  tensorWeights: { name: Object.values(WEIGHT) },
  weightsPicture: {
    name: Object.values(WEIGHT),
    value: ['mean', 'max_abs', 'scale'], // blocks of its type have no minima
    x_from: [0, 1],
    x_to: [1, 2],
    y_from: [0, 1],
    y_to: [1, 2],
  },
  weightsValue: { name: Object.values(WEIGHT), row: [0, 1], column: [0, 1] },
  // No file of llama-imatrix is in the folder; sessions are in a test of the server.
  weightsErrors: { reference: [DENSE], imatrix: [''], session: [''] },
  tensorErrors: { name: Object.values(WEIGHT), reference: [DENSE], imatrix: [''], session: [''] },
  // Less bytes than the smallest types need is an error.
  weightsMix: {
    imatrix: [''],
    session: [''],
    bytes: [Number.MAX_SAFE_INTEGER],
    rows: [1],
  },
  rename: { title: ['x', 'x'.repeat(200), 'ä'.repeat(200), '%_\\"\''] },
};

// Operations whose queries wait in the queue: all that read a session, or weights, and can answer 503.
const QUEUED = readContract()
  .operations.filter(
    ({ method, path, responses }) =>
      ((method === 'GET' &&
        /^\/api\/v1\/(sessions\/\{id\}\/|models\/\{model\}\/weights)/.test(path)) ||
        path.startsWith('/api/v1/sets/')) &&
      responses.has(503),
  )
  .map(({ id }) => id);

// Responses that cannot be produced from outside, with the C++ test that covers them.
export const COVERED_ELSEWHERE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    QUEUED.map((operation) => [
      `${operation} 503 application/problem+json`,
      'needs a large session: QueryQueue.ServerAnswersInTimeDuringManyExpensiveQueries',
    ]),
  ),
  'load 503 application/problem+json':
    'tests/server/models/refusals_test.cpp: a model that does not fit into the memory limit',
  'restore 500 application/problem+json':
    'needs a read-only disk: StorageLimits.ReadOnlyFolderIsServedAndWritesFail',
};
