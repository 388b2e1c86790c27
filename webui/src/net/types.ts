// Short names and checks of the API types. The types are generated from api/openapi.yaml
// (`npm run types` writes schema.d.ts). Times (`_ns`) are nanoseconds since the session's start
// (exact in a double for 104 days); sizes are bytes.
import {
  bool,
  count,
  list,
  nullable,
  num,
  object,
  oneOf,
  optional,
  str,
  type Check,
} from './check';
import type { components, operations } from './schema';

type Schemas = components['schemas'];
export type Health = Schemas['Health'];
export type Version = Schemas['Version'];
export type Server = Schemas['Server'];
export type RecordedProgram = NonNullable<Server['recorded_program']>;
export type Model = Schemas['Model'];
export type Memory = Schemas['Memory'];
export type GgufTensor = Schemas['Gguf']['tensors'][number];
export type MemoryOptions = Schemas['MemoryOptions'];
export type MemoryPlan = Schemas['MemoryPlan'];
export type Residency = Schemas['Residency'];
export type Message = Schemas['Message'];
export type GenerateRequest = Schemas['GenerateRequest'];
export type Run = Schemas['Generation'];
export type RunState = Run['state'];
export type DebugState = Schemas['DebugState'];
export type DebugStop = Schemas['DebugStop'];
export type DebugPlace = Schemas['DebugPlace'];
export type DebugValues = Schemas['DebugValues'];
export type DebugQuery = NonNullable<operations['debugValues']['parameters']['query']>;
export type DebugCommand = Schemas['DebugCommand'];
export type Session = Schemas['Session'];
export type SessionState = Schemas['SessionState'];
export type Token = Schemas['Token'];
// Numbers of a JSON list, or a part of a column.
export interface Numbers {
  readonly length: number;
  readonly [index: number]: number;
  at(index: number): number | undefined;
  some(holds: (value: number) => boolean): boolean;
  reduce(next: (sum: number, value: number) => number, first: number): number;
}
export interface StepSummary extends Omit<Schemas['Step'], 'layers'> {
  readonly layers: { readonly ns: Numbers; readonly bytes: Numbers };
}
export type Kernel = Schemas['Kernel'];
export type Phase = Schemas['Phase'];
export type Op = Schemas['Op'];
export type OpSource = Schemas['OpSource'];
export type Access = Schemas['Access'];
export type Node = Schemas['Node'];
export type Tensor = Schemas['Tensor'];
export type LayerSubgraph = Schemas['LayerSubgraph'];
export type Graph = Schemas['Graph'];
export type GraphNode = LayerSubgraph['nodes'][number];
export type GraphEdge = LayerSubgraph['edges'][number];
export type Category = GraphNode['category'];
export type TraceValue = Schemas['TraceValue'];
export type PictureAxis = Schemas['RasterAxis'];
export type PictureHead = Omit<Schemas['Raster'], 'cells'>;
export type PictureQuery = NonNullable<operations['heatmap']['parameters']['query']>;
export type ExportQuery = NonNullable<operations['export']['parameters']['query']>;
export type ReportQuery = NonNullable<operations['report']['parameters']['query']>;
export type SequentialityQuery = NonNullable<operations['sequentiality']['parameters']['query']>;
export type TraceSums = Schemas['TraceSums'];
export type WithinComparison = Schemas['WithinComparison'];
export type WithinQuery = NonNullable<operations['comparisonWithin']['parameters']['query']>;
export type ComparedSums = Schemas['ComparedSums'];
export type SessionComparison = Schemas['Comparison'];
export type ComparedValues = Schemas['ComparedValues'];
export type ComparedOutput = Schemas['ComparedOutput'];
export type ValuesPicture = Schemas['ComparedValuesPicture'];
export type ValuesPictureQuery = operations['comparedValuesPicture']['parameters']['query'];
export type Breakdown = Schemas['Breakdown'];
export type BreakdownRow = Schemas['BreakdownRow'];
export type OpDurations = Schemas['OpDurations'];
export type Roofline = Schemas['Roofline'];
export type RooflineRow = Schemas['RooflineRow'];
export type Sequentiality = Schemas['Sequentiality'];
export type SplitTimes = Schemas['SplitTimes'];
export type Conditions = Schemas['Conditions'];
export type Findings = Schemas['Findings'];
export type Finding = Findings['findings'][number];
export type FindingTopic = Schemas['FindingTopic'];
export type Evidence = Schemas['Evidence'];
export type Determinism = Schemas['Determinism'];
export type Validation = Pick<Schemas['Validation'], 'passed' | 'verdict'>;
export type Reuse = Schemas['Reuse'];
export type Router = Schemas['Router'];
export type Report = Schemas['Report'];
export type ProblemCode = Schemas['Problem']['code'];
export type Level = NonNullable<GenerateRequest['level']>;
export type TimingMode = NonNullable<GenerateRequest['timing']>;

// The shape of a tensor, innermost dimension first.
export const shapeOf = (of: Pick<Tensor, 'ne0' | 'ne1' | 'ne2' | 'ne3'>): readonly number[] => [
  of.ne0,
  of.ne1,
  of.ne2,
  of.ne3,
];
// 0 if the time of the op was not recorded.
export const durationOf = (op: Op): number => op.duration_ns ?? 0;

export type SessionQuery = NonNullable<operations['sessions']['parameters']['query']>;
export type SessionSort = NonNullable<SessionQuery['sort']>;
export type BreakdownQuery = NonNullable<operations['breakdown']['parameters']['query']>;
export type ExpertsQuery = NonNullable<operations['experts']['parameters']['query']>;
export type RowAxis = Schemas['RowAxis'];

export const health = object<Health>({ status: oneOf('ok', 'loading'), version: str });
export const server = object<Server>({
  data_dir: str,
  recorded_program: nullable(
    object<RecordedProgram>({ name: str, request: str, ended: nullable(str) }),
  ),
});
export const model = object<Model>({
  name: str,
  path: str,
  size_bytes: num,
  importance_matrix: bool,
  state: oneOf('available', 'loading', 'loaded', 'unloading', 'failed'),
  load_progress: num,
});
export const models = object<{ folder?: string | null; models: readonly Model[] }>({
  models: list(model),
});
export type Models = ReturnType<typeof models>;

export const gguf = object<{ tensors: readonly GgufTensor[] }>({
  tensors: list(object<GgufTensor>({ name: str, file_bytes: num, layer: nullable(num) })),
});

export const memory = object<Memory>({
  phase: oneOf('off', 'learning', 'fits', 'active', 'unavailable'),
  message: str,
  pin: bool,
  prefetch: bool,
  limit_bytes: num,
  tokens_per_second: nullable(num),
  bytes_per_token: num,
  plan: object<Memory['plan']>({ budget_bytes: num }),
});
const residentRanges = list(
  object<Residency['resident_ranges'][number]>({
    model_file: num,
    file_offset: num,
    file_bytes: num,
  }),
);
export const residency = object<Residency>({
  step: num,
  tensors: list(
    object<Residency['tensors'][number]>({
      tensor_name: str,
      model_file: num,
      file_offset: num,
      file_bytes: num,
      mapped: bool,
      resident_bytes: nullable(num),
    }),
  ),
  resident_ranges: residentRanges,
});
export const memoryPlan = object<MemoryPlan>({
  tensors: list(
    object<MemoryPlan['tensors'][number]>({
      tensor_name: str,
      model_file: num,
      file_offset: num,
      file_bytes: num,
      mapped: bool,
      resident_bytes: nullable(num),
      pinned_bytes: num,
      streamed_bytes: num,
    }),
  ),
  planned_ranges: list(
    object<MemoryPlan['planned_ranges'][number]>({
      model_file: num,
      file_offset: num,
      file_bytes: num,
      pinned: bool,
    }),
  ),
  resident_ranges: residentRanges,
  residency_known: bool,
  curve: list(
    object<MemoryPlan['curve'][number]>({
      budget_bytes: num,
      bytes_per_token: num,
      tokens_per_second: nullable(num),
      plain_bytes_per_token: num,
      plain_tokens_per_second: nullable(num),
    }),
  ),
});

export const runState = oneOf('queued', 'running', 'done', 'cancelled', 'failed');
export const run = object<Run>({ id: str, state: runState });

export const runs = object<{ generations: readonly Run[] }>({ generations: list(run) });

const debugPlace = object<DebugPlace>({
  step: count,
  first_token: count,
  tokens: count,
  op: count,
  layer_id: nullable(count),
  operation_type: str,
  tensor_name: str,
});
const debugStop = object<DebugStop>({
  number: num,
  place: debugPlace,
  before: bool,
  breakpoints: list(num),
  tensors: list(object({ label: str, name: str, type: str, shape: list(num), unreadable: nullable(str) })), // prettier-ignore
  changeable: list(oneOf('all', 'indices', 'head', 'expert')),
});
export const debugState = object<DebugState>({
  stop: nullable(debugStop),
  time_left_ms: nullable(num),
  breakpoints: list(object({ number: num, text: str, hits: num })),
  changes: list(
    object<DebugState['changes'][number]>({
      place: debugPlace,
      text: str,
      elements: num,
      last_step: num,
    }),
  ),
  kept: list(
    object<DebugState['kept'][number]>({
      number: num,
      place: debugPlace,
      text: str,
      steps: num,
      problem: nullable(str),
    }),
  ),
});
export const debugValues = object<DebugValues>({
  shape: list(num),
  statistics: object<DebugValues['statistics']>({ elements: num, nan: num, inf: num }),
  values: list((v, path) => (typeof v === 'string' ? str(v, path) : num(v, path))),
});

export const session = object<Session>({ id: str, state: str, start_utc_ns: num, file_bytes: num });
export const sessions = object<{ total: number; sessions: readonly Session[] }>({
  total: num,
  sessions: list(session),
});
export type SessionPage = ReturnType<typeof sessions>;
export const deleted = object<{ id: string; restore_until_utc_ns: number }>({
  id: str,
  restore_until_utc_ns: num,
});

export const token = object<Token>({
  index: count,
  id: num,
  generated: bool,
  sequence: nullable(count),
  draft: nullable(oneOf<NonNullable<Token['draft']>>('accepted', 'rejected', 'unknown')),
  text: str,
  answer: optional(str),
});
export const tokens = object<{ total: number; tokens: readonly Token[] }>({
  total: num,
  tokens: list(token),
});

// `layers` has one entry per layer and a last one for ops without a layer (embedding, output).
export const stepSummary = object<StepSummary>({
  step: count,
  phase: str,
  timing: str,
  template: nullable(num),
  token_id: count,
  token_count: count,
  begin_ns: num,
  end_ns: num,
  duration_ns: num,
  layers: object<StepSummary['layers']>({ ns: list(num), bytes: list(num) }),
});

export const op = object<Op>({
  op: num,
  operation_type: str,
  tensor_name: str,
  ne0: num,
  op_layer_id: nullable(num),
  timestamp_ns: num,
  duration_ns: nullable(num),
  bytes_read: num,
  bytes_written: num,
  sources: list(object<OpSource>({ tensor_name: str, ne0: num })),
});
export const ops = object<{ total: number; ops: readonly Op[] }>({ total: num, ops: list(op) });

export const access = object<Access>({
  op: num,
  tensor_name: str,
  write: bool,
  size_bytes: num,
});
export const accesses = object<{ total: number; accesses: readonly Access[] }>({
  total: num,
  accesses: list(access),
});

export const node = object<Node>({ node: num, op: str, tensor: num, sources: list(nullable(num)) });
export const nodes = object<{ total: number; nodes: readonly Node[] }>({
  total: num,
  nodes: list(node),
});
export const tensor = object<Tensor>({
  tensor: num,
  tensor_name: str,
  ne0: num,
  tensor_bytes: num,
});
export const tensors = object<{ total: number; tensors: readonly Tensor[] }>({
  total: num,
  tensors: list(tensor),
});

export const layerSubgraph = object<LayerSubgraph>({
  template: num,
  layer: num,
  nodes: list(object<GraphNode>({ tensor: num, name: str, shape: list(num), category: str })),
  edges: list(object<GraphEdge>({ from: num, to: num })),
});

export const wholeGraph = object<Graph>({
  template: num,
  layers: num,
  nodes: list(object<GraphNode>({ tensor: num, name: str, shape: list(num), category: str })),
  edges: list(object<GraphEdge>({ from: num, to: num })),
});

const pictureAxis = object<PictureAxis>({
  axis: str,
  size: num,
  from: num,
  to: num,
  pixels: num,
  rows: list(str),
  sections: list(object<PictureAxis['sections'][number]>({ name: str, from: num, to: num })),
});
const figureOfRows = list(nullable(num));
const rowFigures = object<NonNullable<PictureHead['row_figures']>>({
  phase: str,
  units: num,
  left_out: num,
  times: nullable(object<Schemas['TimedSteps']>({ verdict: nullable<Schemas['Verdict']>(str) })),
  mean: figureOfRows,
  p5: figureOfRows,
  median: figureOfRows,
  p95: figureOfRows,
});
export const pictureHead = object<PictureHead>({
  x: pictureAxis,
  y: pictureAxis,
  largest: num,
  shown: num,
  total: num,
  row_figures: optional(rowFigures),
});

const readOrder = object<Schemas['ReadOrder']>({
  reads: num,
  sequential: num,
  bytes: num,
  sequential_bytes: num,
});
export const sequentiality = object<Sequentiality>({ gap: num, sums: readOrder });

const sums = object<TraceSums>({ bytes_read: num, bytes_written: num, reads: num, time_ns: num });
const breakdownRow = object<BreakdownRow>({ name: str, all: sums });
export const breakdown = object<Breakdown>({
  total: num,
  rows: list(breakdownRow),
  sums: breakdownRow,
});

export const opDurations = object<OpDurations>({
  bins: list(object<OpDurations['bins'][number]>({ from_ns: num, executions: num, time_ns: num })),
});

export const roofline = object<Roofline>({
  text: str,
  read_bandwidth: nullable(num),
  compute_peak: nullable(num),
  times: object<Roofline['times']>({ text: str }),
  rows: list(
    object<RooflineRow>({
      name: str,
      op_kind: str,
      text: str,
      above_bound_ns: nullable(num),
      step_ns: object<RooflineRow['step_ns']>({ median: num }),
    }),
  ),
});

const comparedSums = {
  difference: object<Schemas['ComparedFigures'] & object>({ time_ns: nullable(num) }),
};
export const comparisonWithin = object<WithinComparison>({
  total: num,
  sums: object<ComparedSums>(comparedSums),
  rows: list(object<WithinComparison['rows'][number]>({ name: str, ...comparedSums })),
});

const comparedSession = object<SessionComparison['left']>({ id: str, title: str });
export const comparison = object<SessionComparison>({
  left: comparedSession,
  right: comparedSession,
  tokens: object<SessionComparison['tokens']>({ left: num, right: num, text: str }),
  causes: list(object<SessionComparison['causes'][number]>({ kind: str, title: str, reason: str })),
  total: object<ComparedSums>(comparedSums),
  rows: list(object<SessionComparison['rows'][number]>({ name: str, ...comparedSums })),
});

const comparedOutput = object<ComparedOutput>({
  step: num,
  op: num,
  operation_type: str,
  tensor_name: str,
  layer_id: nullable(num),
  shape: list(num),
  same_shape: bool,
  max_error: nullable(num),
  relative_error: nullable(num),
  left: nullable(num),
  right: nullable(num),
});
export const comparedValues = object<ComparedValues>({
  first_beyond: nullable(comparedOutput),
  only_left: num,
  only_right: num,
  other_tokens_from_step: nullable(num),
  total: num,
  different: num,
  layers: list(
    object<ComparedValues['layers'][number]>({
      layer_id: num,
      outputs: num,
      max_error: nullable(num),
      relative_error: nullable(num),
    }),
  ),
  outputs: list(comparedOutput),
});
export const comparedValuesPicture = object<ValuesPicture>({
  output: comparedOutput,
  width: num,
  height: num,
  left: list(nullable(num)),
  right: list(nullable(num)),
});

export const conditions = object<Conditions>({ text: str });
export const findings = object<Findings>({
  headline: list(object<Findings['headline'][number]>({ name: str, value: str })),
  findings: list(
    object<Finding>({
      text: str,
      role: str,
      evidence: object<Evidence>({ view: str, shows: str, filter: str, rest: str }),
    }),
  ),
  advice: list(object<Findings['advice'][number]>({ text: str, because: str })),
});
export const validation = object<Validation>({ passed: bool, verdict: str });
// The rows of an SQL statement: text, number or null by column.
export interface QueryRows {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | null)[])[];
  readonly more: boolean; // there are further rows
}
const cells: Check<readonly (string | number | null)[]> = (v, path) =>
  list((cell: unknown) => cell as string | number | null)(v, path);
export const queryRows = object<QueryRows>({ columns: list(str), rows: list(cells) });

// ---- Analyses: the charts check what they draw ---------------------------------------------

export type HotCold = Schemas['HotCold'];
export type RouterDetail = Schemas['RouterDetail'];
export type ExpertCaches = Schemas['ExpertCaches'];
export type HeadWeight = Schemas['HeadWeight'];
export type KvStep = Schemas['KvStep'];
export type Compression = Schemas['Compression'];
export type AccessPattern = Pick<Schemas['AccessPattern'], 'prediction'>;
export type Checked = Schemas['Validation'];
export type Raster = Schemas['Raster'];

// ---- Weights --------------------------------------------------------------------------------

export type WeightsOfTensor = Schemas['Weights']['tensors'][number];
export type TensorWeights = Schemas['TensorWeights'];
export type WeightBins = NonNullable<Schemas['WeightBins']>;
export type WeightsErrors = Schemas['WeightsErrors'];
export type ErrorsOfTensor = WeightsErrors['tensors'][number];
export type TensorErrors = Schemas['TensorErrors'];
export type WeightsMix = Schemas['WeightsMix'];
export type WeightsPictureHead = Omit<Schemas['WeightsPicture'], 'cells'>;
export type WeightsPictureQuery = operations['weightsPicture']['parameters']['query'];
export type WeightsValue = Schemas['WeightsValue'];

export const hot = object<HotCold>({
  total: num,
  rows: list(object<HotCold['rows'][number]>({ name: str, all: sums, heat: str, size_bytes: num })),
});
const saved = object<Schemas['SavedReads']>({ reads_saved: num, bytes_saved: num });
export const reuse = object<Reuse>({
  bytes_read: num,
  distinct_bytes: num,
  distances: list(object<Reuse['distances'][number]>({ from_bytes: num, reads: num, bytes: num })),
  curve: list(
    object<Reuse['curve'][number]>({ capacity_bytes: num, lru: saved, belady: saved, pin: saved }),
  ),
});
export type PinOrder = Schemas['PinOrder'];
export const pinOrder = object<PinOrder>({
  total: num,
  parts: list(
    object<PinOrder['parts'][number]>({
      tensor: str,
      expert: nullable(num),
      size_bytes: num,
      memory_bytes: num,
    }),
  ),
});
const usedExperts = list(object<Router['used'][number]>({ expert: num, choices: num, share: num }));
const router = { experts: num, tokens: num, choices: num, entropy_bits: num, used: usedExperts };
export type Experts = { readonly routers: readonly Router[] };
export const experts = object<Experts>({ routers: list(object<Router>(router)) });
export type RouterMargins = Schemas['RouterMargins'];
export const expertMargins = object<{ readonly routers: readonly RouterMargins[] }>({
  routers: list(object<RouterMargins>({ scores: str, experts: num, tokens: num })),
});
export const expertLayer = object<RouterDetail>({
  ...router,
  pairs: list(object<RouterDetail['pairs'][number]>({ a: num, b: num, together: num, lift: num })),
});
const hits = object<Schemas['CacheLayouts']['layers']>({
  lru: num,
  lfu: num,
  pinned: num,
  belady: num,
});
const layouts = object<Schemas['CacheLayouts']>({ layers: hits, pool: hits });
export const expertCaches = object<ExpertCaches>({
  counted: num,
  rows: list(
    object<ExpertCaches['rows'][number]>({ slots: num, recorded: layouts, control: layouts }),
  ),
});
export type Heads = {
  readonly heads: number;
  readonly kv_heads: number;
  readonly weights: readonly HeadWeight[];
};
export const heads = object<Heads>({
  heads: num,
  kv_heads: num,
  weights: list(
    object<HeadWeight>({
      name: str,
      role: str,
      heads: list(
        object<HeadWeight['heads'][number]>({ head: num, file_offset: num, bytes_read: num }),
      ),
    }),
  ),
});
export type HeadAttention = Schemas['HeadAttention'];
export type LargestHead = Schemas['LargestHead'];
export const attention = object<{
  readonly heads: readonly HeadAttention[];
  readonly largest: readonly LargestHead[];
}>({
  largest: list(object<LargestHead>({ measure: str, layer: nullable(num), head: num, text: str })),
  heads: list(
    object<HeadAttention>({
      head: num,
      tokens: num,
      entropy: num,
      distance: num,
      first: num,
      previous: num,
      self: num,
      elsewhere: num,
    }),
  ),
});
export type TokenAttention = Schemas['TokenAttention'];
export const attentionWeights = object<{
  readonly total: number;
  readonly rows: readonly TokenAttention[];
}>({
  total: num,
  rows: list(object<TokenAttention>({ head: num, token: num, weights: list(num) })),
});
export const splitTimes = object<SplitTimes>({
  total: num,
  backends: list(
    object<SplitTimes['backends'][number]>({
      phase: str,
      backend: str,
      time_ns: num,
      splits: num,
      not_waited: num,
    }),
  ),
  transfers: list(
    object<SplitTimes['transfers'][number]>({
      phase: str,
      from: str,
      to: str,
      time_ns: num,
      copies: num,
      bytes: num,
      not_waited: num,
    }),
  ),
});
export type LensRow = Schemas['LensRow'];
export const lens = object<{ readonly total: number; readonly rows: readonly LensRow[] }>({
  total: num,
  rows: list(
    object<LensRow>({
      token: num,
      step: num,
      likely: list(object<LensRow['likely'][number]>({ id: num, text: str })),
    }),
  ),
});
export type MeanAttention = Schemas['MeanAttention'];
export const meanAttention = object<{
  readonly total: number;
  readonly rows: readonly MeanAttention[];
}>({
  total: num,
  rows: list(object<MeanAttention>({ token: num, weights: list(num) })),
});
const captured = {
  step: num,
  op: num,
  token: num,
  tokens: num,
  operation: str,
  output: str,
  part: str,
  layer: nullable(num),
  type: str,
  shape: list(num),
  bytes: num,
  min: nullable(num),
  max: nullable(num),
  mean: nullable(num),
  std: nullable(num),
  norm: nullable(num),
  nan: num,
  inf: num,
};
export type CapturedOutput = Schemas['CapturedOutput'];
export type CapturedOutputs = Schemas['CapturedOutputs'];
export const capturedOutputs = object<CapturedOutputs>({
  total: num,
  bytes: num,
  not_captured: num,
  rows: list(object<CapturedOutput>(captured)),
});
export type CapturedOutputValues = Schemas['CapturedOutputValues'];
export type CapturedPictureQuery = NonNullable<
  operations['capturedPicture']['parameters']['query']
>;
export const capturedOutputValues = object<CapturedOutputValues>({
  ...captured,
  total: num,
  histogram: list(
    object<CapturedOutputValues['histogram'][number]>({ from: num, to: num, count: num }),
  ),
  values: list(nullable(num)),
});
export type ResidualLayer = Schemas['ResidualLayer'];
export const residual = object<{ readonly layers: readonly ResidualLayer[] }>({
  layers: list(object<ResidualLayer>({ tokens: num })),
});
export type OutputChannels = Schemas['OutputChannels'];
export const channels = object<{ readonly rows: readonly OutputChannels[] }>({
  rows: list(
    object<OutputChannels>({
      output: str,
      top: list(object<OutputChannels['top'][number]>({ channel: num, share: num })),
    }),
  ),
});
export type Kv = { readonly total: number; readonly steps: readonly KvStep[] };
export const kv = object<Kv>({
  total: num,
  steps: list(
    object<KvStep>({
      step: num,
      state_read: num,
      state_written: num,
      layers: list(
        object<KvStep['layers'][number]>({ fresh: num, cached: num, other: num, written: num }),
      ),
    }),
  ),
});
export const determinism = object<Determinism>({
  pairs: num,
  identical: num,
  same_weights: num,
  first_differences: list(
    object<Determinism['first_differences'][number]>({
      cause: str,
      step: num,
      op: num,
      tensor_name: str,
    }),
  ),
});
export const accessPattern = object<AccessPattern>({
  prediction: object<AccessPattern['prediction']>({ accuracy: num, reads: num, right: num }),
});
export const checked = object<Checked>({
  passed: bool,
  verdict: str,
  checks: list(
    object<Checked['checks'][number]>({ check: str, verdict: str, items_checked: num, wrong: num }),
  ),
});
const compressionSum = { bytes: num, bits_per_weight: num };
export const compression = object<Compression>({
  total: object<Compression['total']>(compressionSum),
  types: list(object<Compression['types'][number]>({ type: str, ...compressionSum })),
  layers: list(object<Compression['layers'][number]>({ layer: nullable(num), ...compressionSum })),
  components: list(
    object<Compression['components'][number]>({ component: str, ...compressionSum }),
  ),
});
export const raster = object<Raster>({
  x: pictureAxis,
  y: pictureAxis,
  cells: list(list(num)),
});

const ofTensor = { name: str, type: str, shape: list(num), layer: nullable(num), bytes: num };
export const weights = object<Schemas['Weights']>({
  tensors: list(
    object<WeightsOfTensor>({ ...ofTensor, count: optional(num), error: optional(str) }),
  ),
});
const bins = nullable(list(object<WeightBins[number]>({ from: num, to: num, count: num })));
export const tensorWeights = object<TensorWeights>({
  ...ofTensor,
  histogram: bins,
  quantiles: list(object<TensorWeights['quantiles'][number]>({ share: num, value: num })),
  scales: bins,
  minima: bins,
  largest_rows: list(object<TensorWeights['largest_rows'][number]>({ row: num, rms: num })),
});
const comparedTensor = {
  ...ofTensor,
  reference_type: nullable(str),
  bytes_saved: nullable(num),
  reads: nullable(num),
  relative_error: optional(num),
  error: optional(str),
};
export const weightsErrors = object<WeightsErrors>({
  relative_error: num,
  predicted_relative_error: nullable(num),
  tensors: list(object<ErrorsOfTensor>(comparedTensor)),
  layers: list(
    object<WeightsErrors['layers'][number]>({ layer: nullable(num), relative_error: num }),
  ),
  components: list(
    object<WeightsErrors['components'][number]>({ component: str, relative_error: num }),
  ),
});
export const tensorErrors = object<TensorErrors>({
  ...comparedTensor,
  worst_rows: list(
    object<TensorErrors['worst_rows'][number]>({ row: num, relative_error: num, rmse: num }),
  ),
  worst_blocks: list(
    object<TensorErrors['worst_blocks'][number]>({ row: num, first: num, rmse: num }),
  ),
});
export const weightsMix = object<WeightsMix>({
  bytes: num,
  relative_error: num,
  tensors: list(object<WeightsMix['tensors'][number]>({ rule: nullable(str) })),
});
const weightsAxis = object<WeightsPictureHead['x']>({ size: num, from: num, to: num });
export const weightsPictureHead = object<WeightsPictureHead>({
  x: weightsAxis,
  y: weightsAxis,
  largest: num,
  values_per_cell: num,
});
export const weightsValue = object<WeightsValue>({
  value: nullable(num),
  quant: nullable(num),
  scale: nullable(num),
  minimum: nullable(num),
  super_block: nullable(
    object<NonNullable<WeightsValue['super_block']>>({
      scale: nullable(num),
      scale_factor: num,
      minimum: nullable(num),
      minimum_factor: nullable(num),
    }),
  ),
  block: object<WeightsValue['block']>({
    first: num,
    values: num,
    bytes: str,
    min: num,
    max: num,
    mean: num,
    zeros: num,
    outliers: num,
  }),
});
