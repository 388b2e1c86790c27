// Details of tokens, layers and the session.
import {
  componentName,
  exactBytes,
  exactNs,
  formatBytes,
  formatCount,
  formatNs,
  plural,
  timingText,
  tokenText,
} from '../../format';
import { durationOf, type Op, type Session, type StepSummary } from '../../net/types';
import type { TraceData } from '../../state/session/trace_data';
import {
  fact,
  type Fact,
  type FactGroup,
  type Figure,
  type Inspection,
  type Jump,
} from './inspection';
import { jumpToExpertToken, type ExpertTokens } from './expert_tokens';
import { againstMedian, everything, slownessText } from './place';
import { stepCourses } from './step_courses';
import {
  expertName,
  headName,
  type ExpertOfLayer,
  type HeadOfLayer,
} from '../../state/view/selection';
import { serverSlotOf } from '../../state/session/server_slot';
import { originOf } from '../../state/session/token_origin';
import { ofExpert, ofHead, ofLayer, ofSession, ofToken } from './reproduce';

// `layer`: the selected one, in the map the row of the token's cell.
export function inspectToken(
  data: TraceData,
  index: number,
  step: StepSummary | undefined,
  layer: number,
  serverSlots: Session['server_slots'] = [],
): Inspection {
  const token = data.tokens[index];
  return {
    kind: 'Token',
    number: index,
    title: tokenText(token) || String(index),
    figures: step ? [stepTime(data, step), ...layerTime(data, step, layer)] : [],
    place: step ? everything(step.step) : null,
    now: null,
    copy: ofToken(index),
    facts: [
      ...fact('index', `${index} of the session`),
      ...fact('id', token?.id),
      ...fact('position', token?.position),
      ...fact('origin', token && originOf(token)),
      ...fact('request', token?.sequence ?? undefined),
      ...fact('slot of the server', serverSlotOf(serverSlots, token?.sequence) ?? undefined),
      ...(step
        ? stepFacts(step)
        : fact('read by step', token?.reused ? 'none (reused from the KV cache)' : 'none')),
    ],
    links: [{ title: 'Neighbours', jumps: [-1, 1].flatMap((by) => jumpToToken(data, index + by)) }],
    layer: null,
    json: { ...token, computed_by: step },
  };
}

function jumpToToken(data: TraceData, index: number): readonly Jump[] {
  const token = data.tokens[index];
  if (!token) return [];
  const text = tokenText(token);
  return [{ text, detail: `token ${index}`, to: { kind: 'token', token: index } }];
}

// What the machine did to the time of the step.
function machineFacts(step: StepSummary): readonly Fact[] {
  const { cpu_wait_ns: wait, throttled_ns: throttled, major_faults: faults } = step;
  const { thermal_throttles: hot } = step;
  const because = [
    wait ? `${formatNs(wait)} waiting for a processor` : '',
    throttled ? `${formatNs(throttled)} stopped by a CPU limit` : '',
    hot ? `processors were slowed down ${hot === 1 ? 'once' : `${hot} times`}: too hot` : '',
    faults ? plural(faults, 'major page fault') : '',
  ].filter(Boolean);
  const { frequency_khz: frequency } = step;
  return [
    ...fact('machine', [step.verdict ?? 'not recorded', ...because].join(', ')),
    ...(frequency === null
      ? []
      : fact('processor frequency', `${(frequency / 1e6).toFixed(2)} GHz`)),
  ];
}

// What the process waited for to have the memory of the step; empty: not recorded.
export function memoryFacts(step: StepSummary): readonly Fact[] {
  const { disk_read_bytes: disk, reread_factor: again, bytes_per_fault: perFault } = step;
  const { minor_faults: minor, memory_limit_bytes: limit, locked_bytes: locked } = step;
  const { resident_bytes: resident } = step;
  const pressure = [
    step.pressure_cpu_ns ? `${formatNs(step.pressure_cpu_ns)} for a processor` : '',
    step.pressure_io_ns ? `${formatNs(step.pressure_io_ns)} for a disk` : '',
    step.pressure_memory_ns ? `${formatNs(step.pressure_memory_ns)} for memory` : '',
  ].filter(Boolean);
  const read = [
    disk === null ? '' : formatBytes(disk),
    disk && again !== null ? `${again.toFixed(2)} times the weights that the step read` : '',
    disk && perFault !== null ? `${formatBytes(Math.round(perFault))} per major page fault` : '',
  ].filter(Boolean);
  return [
    ...(read.length === 0 ? [] : fact('read from disks', read.join(', '))),
    ...(minor === null ? [] : fact('minor page faults', formatCount(minor))),
    ...(pressure.length === 0 ? [] : fact('tasks waited', pressure.join(', '))),
    ...(limit === null ? [] : fact('memory limit', formatBytes(limit))),
    ...(locked ? fact('locked memory', formatBytes(locked)) : []),
    ...(resident === null ? [] : fact('weights in memory', formatBytes(resident))),
  ];
}

// What the time since the previous step was spent on.
export function spentFacts(step: StepSummary): readonly Fact[] {
  const { queue_ns: queue, sample_ns: sample, detokenize_ns: text } = step;
  const { build_ns: build, evaluate_ns: evaluate, graphs_built: built } = step;
  const before = [
    queue ? `${formatNs(queue)} in the queue` : '',
    sample === null ? '' : `${formatNs(sample)} sampling`,
    text === null ? '' : `${formatNs(text)} text`,
  ].filter(Boolean);
  return [
    ...(before.length > 0 ? fact('before the step', before.join(', ')) : []),
    ...(build === null
      ? []
      : fact('graph ready after', `${formatNs(build)}, ${built === 0 ? 'used again' : 'built'}`)),
    ...(evaluate === null ? [] : fact('evaluation', formatNs(evaluate))),
  ];
}

function stepFacts(step: StepSummary): readonly Fact[] {
  const time = step.duration_ns;
  const { token_count: tokens } = step;
  return [
    ...fact(
      'read by step',
      `${step.step}, ${step.phase}${tokens > 1 ? `, with ${tokens} tokens` : ''}`,
    ),
    ...(step.dropped
      ? fact('step time', 'lost: the disk or the CPU did not keep up')
      : fact('step time', formatNs(time), { exact: exactNs(time) })),
    ...machineFacts(step),
    ...memoryFacts(step),
    ...spentFacts(step),
    ...fact('op times', `${timingText(step.timing)}${step.aborted ? ', aborted' : ''}`),
    ...fact('ops', formatCount(step.ops_timed)),
    ...fact('accesses', formatCount(step.accesses)),
    ...fact('read', formatBytes(step.bytes_read), { exact: exactBytes(step.bytes_read) }),
    ...fact('written', formatBytes(step.bytes_written), { exact: exactBytes(step.bytes_written) }),
    ...fact('graph', step.template ?? 'not recorded'),
  ];
}

export function inspectLayer(
  layer: number,
  layers: number,
  step: StepSummary | undefined,
  ops: readonly Op[],
): Inspection {
  const own = ops.filter((op) => op.op_layer_id === layer);
  const time = step?.layers.ns[layer] ?? 0;
  const whole = step?.layers.ns.reduce((sum, ns) => sum + ns, 0) ?? 0;
  const jump = (to: number): readonly Jump[] =>
    to >= 0 && to < layers
      ? [{ text: `layer ${to}`, detail: '', to: { kind: 'layer', layer: to } }]
      : [];
  return {
    kind: 'Layer',
    title: String(layer),
    figures:
      whole > 0
        ? [
            {
              name: 'of the step',
              value: formatNs(time),
              exact: exactNs(time),
              share: time / whole,
              ofStep: true,
            },
          ]
        : [],
    place: { axis: 'layer', name: String(layer), index: layer },
    now: step ? { time, bytes: step.layers.bytes[layer] ?? 0 } : null,
    copy: ofLayer(layer, step?.step ?? 0),
    facts: [
      ...fact('step', step?.step),
      ...fact('time', formatNs(time), { exact: exactNs(time) }),
      ...(whole > 0 ? fact('share of the step', `${((100 * time) / whole).toFixed(1)} %`) : []),
      ...fact('bytes', formatBytes(step?.layers.bytes[layer] ?? 0)),
      ...fact('ops', own.length),
      ...components(own),
    ],
    links: [
      { title: 'Previous layer', jumps: jump(layer - 1) },
      { title: 'Next layer', jumps: jump(layer + 1) },
    ],
    layer,
    json: {
      layer,
      step: step?.step,
      ns: step?.layers.ns[layer],
      bytes: step?.layers.bytes[layer],
      ops: own,
    },
  };
}

// An expert of a layer. `used`: the tokens that used it; null: loading.
export function inspectExpert(
  of: ExpertOfLayer,
  data: TraceData,
  used: ExpertTokens | null,
): Inspection {
  const { layer, expert } = of;
  return {
    kind: 'Expert',
    title: `${expert} of layer ${layer}`,
    figures: [],
    place: { axis: 'expert', name: expertName(of), index: null },
    now: null,
    copy: ofExpert(of),
    facts: [...fact('expert', expert), ...fact('layer', layer)],
    links: [
      {
        title: used?.more ? 'The first tokens that used it' : 'Tokens that used it',
        jumps: (used?.tokens ?? []).map((one) => jumpToExpertToken(data, one)),
      },
    ],
    accessesOf: `layer:${layer} expert:${expert}`,
    layer,
    json: { layer, expert, ...(used ? { tokens: used.tokens } : {}) },
  };
}

// An attention head of a layer: its parts of the weights and of the KV cache.
export function inspectHead(of: HeadOfLayer): Inspection {
  const { layer, head } = of;
  const name = headName(of);
  return {
    kind: 'Head',
    title: name,
    figures: [],
    place: { axis: 'head', name, index: null },
    now: null,
    copy: ofHead(layer),
    facts: [...fact('head', head), ...fact('layer', layer)],
    links: [
      {
        title: 'Part of',
        jumps: [{ text: `layer ${layer}`, detail: '', to: { kind: 'layer', layer } }],
      },
    ],
    layer,
    json: { layer, head },
  };
}

function components(ops: readonly Op[]): readonly Fact[] {
  const times = new Map<string, number>();
  for (const op of ops) {
    const before = times.get(op.component) ?? 0;
    times.set(op.component, before + durationOf(op));
  }
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .flatMap(([name, ns]) => fact(componentName(name), formatNs(ns), { exact: exactNs(ns) }));
}

export function inspectSession(session: Session, data: TraceData): Inspection {
  const { model } = session;
  const heads = session.n_heads === undefined ? '' : formatCount(session.n_heads);
  const lost = Object.values(session.losses ?? {}).reduce((sum, n) => sum + n, 0);
  return {
    kind: 'Session',
    title: session.title || session.id,
    figures: [],
    place: data.steps.length > 0 ? everything() : null,
    now: null,
    copy: ofSession,
    facts: [
      ...fact('id', session.id, { mono: true }),
      ...fact('state', session.error ? `${session.state}: ${session.error}` : session.state),
      ...fact('started', new Date(session.start_utc_ns / 1e6).toLocaleString()),
      ...fact(
        'level',
        session.level && `${session.level}${session.exact_timing ? ', exact timing' : ''}`,
      ),
      ...fact('tokens', session.tokens === undefined ? '' : formatCount(session.tokens)),
      ...fact(
        'reused',
        session.reused_tokens
          ? `${plural(session.reused_tokens, 'token')}${session.reused_from ? ` of ${session.reused_from}` : ''}`
          : '',
      ),
      ...fact('warning', session.facts?.['load.warning']),
      ...fact('steps', session.steps === undefined ? '' : formatCount(session.steps)),
      ...timeOfSteps(data),
      ...fact('file', formatBytes(session.file_bytes), { exact: exactBytes(session.file_bytes) }),
      ...fact('lost', lost > 0 ? formatCount(lost) : 'none'),
      ...fact('program', session.program?.text),
      ...fact('model', model?.path, { mono: true }),
      ...fact('model size', model && formatBytes(model.size), {
        exact: model ? exactBytes(model.size) : '',
      }),
      ...fact('layers', session.n_layers),
      ...fact('heads', heads && session.n_heads_kv ? `${heads}, ${session.n_heads_kv} KV` : heads),
      ...fact('embedding size', session.n_embd),
      ...fact('vocabulary', session.n_vocab ? formatCount(session.n_vocab) : ''),
      ...fact(
        'experts',
        session.n_experts ? `${session.n_experts_used ?? 0} of ${session.n_experts}` : '',
      ),
    ],
    groups: factGroups(session.facts ?? {}),
    links: [],
    layer: null,
    json: session,
  };
}

const WAITING = 'with the waiting between ops';

// The step of a token, from its begin to its end, against the median of the steps of its phase.
function stepTime(data: TraceData, step: StepSummary): Figure {
  const time = step.duration_ns;
  const { usual, duration } = stepCourses(data);
  return {
    name: 'step time',
    value: formatNs(time),
    exact: exactNs(time),
    note: [WAITING, againstMedian(time, usual.get(step.phase) ?? 0), slownessText(step)]
      .filter(Boolean)
      .join(', '),
    ofStep: true,
    series: duration,
  };
}

// The op time of a token in a layer, as in its cell of the map.
function layerTime(data: TraceData, step: StepSummary, layer: number): readonly Figure[] {
  const { token_count: tokens } = step;
  const time = (step.layers.ns[layer] ?? 0) / tokens;
  if (!(time > 0)) return [];
  return [
    {
      name: `layer ${layer}`,
      value: formatNs(time),
      exact: exactNs(Math.round(time)),
      note: tokens > 1 ? `its share of a step of ${plural(tokens, 'token')}` : '',
      ofStep: true,
      series: stepCourses(data).layers[layer] ?? [],
    },
  ];
}

// From begin to end; the totals add up the ops.
function timeOfSteps({ stepTotals: { ns: sum } }: TraceData): readonly Fact[] {
  return sum === 0 ? [] : fact('time of the steps', formatNs(sum), { exact: exactNs(sum) });
}

// Groups facts by the first part of the key: `model.llama.rope.freq_base` becomes "rope freq base"
// in the group "model".
function factGroups(facts: Readonly<Record<string, string>>): readonly FactGroup[] {
  const groups = new Map<string, Fact[]>();
  const architecture = facts['model.architecture'] ?? '';
  for (const [key, value] of Object.entries(facts)) {
    const [title = '', ...rest] = key.split('.');
    if (rest[0] === architecture) rest.shift();
    const name = rest.join(' ').replaceAll('_', ' ');
    const list = groups.get(title) ?? [];
    list.push(...measured(key, name === '' ? title : name, value));
    groups.set(title, list);
  }
  return [...groups].map(([title, list]) => ({ title, facts: list }));
}

// Sizes whose name does not say the unit.
const SIZES: ReadonlySet<string> = new Set([
  'context.memory_budget',
  'memory.budget',
  'memory.pinned',
  'memory.streamed',
  'memory.expert_cache',
  'memory.window',
]);

// Times and sizes are recorded in nanoseconds and bytes.
function measured(key: string, name: string, value: string): readonly Fact[] {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : null;
  if (number !== null && key.endsWith('_ns'))
    return fact(name.replace(/ ns$/, name === 'duration ns' ? '' : ' time'), formatNs(number), {
      exact: exactNs(number),
    });
  if (number !== null && (key.endsWith('_bytes') || SIZES.has(key)))
    return fact(name, formatBytes(number), { exact: exactBytes(number) });
  return fact(name, value);
}
