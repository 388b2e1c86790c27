// A run with a plan beside one without it: recordings of the model of each kind, and what their
// generated tokens cost. Pure functions.
import { formatBytes, formatSpeed } from '../../format';
import type { Model, QueryRows, Session } from '../../net/types';
import { isModelOf } from '../map/residency';

export interface RunPair {
  readonly plain: Session | null;
  readonly planned: Session | null;
  readonly isSamePrompt: boolean;
}

// `sessions`: the newest first. Runs without generated tokens do not count. Of the same prompt, if
// there are such runs: another prompt can use other weights.
export function runPair(sessions: readonly Session[], model: Model): RunPair {
  const runs = sessions.filter(
    (one) =>
      isModelOf(one, model) &&
      one.state !== 'running' &&
      Number(one.facts?.['result.generated_tokens'] ?? 0) > 1,
  );
  const all = { plain: runs.filter((one) => !isPlanned(one)), planned: runs.filter(isPlanned) };
  for (const planned of all.planned) {
    const prompt = promptOf(planned);
    const plain = prompt === null ? undefined : all.plain.find((one) => promptOf(one) === prompt);
    if (plain) return { plain, planned, isSamePrompt: true };
  }
  return { plain: all.plain[0] ?? null, planned: all.planned[0] ?? null, isSamePrompt: false };
}

// Null: not recorded, as of a prompt of token IDs.
function promptOf({ facts = {} }: Session): string | null {
  const own = Object.entries(facts).filter(([key]) => /^request\.(prompt$|messages\.)/.test(key));
  return own.length === 0 ? null : JSON.stringify(own);
}

const isPlanned = ({ facts }: Session): boolean => facts?.['memory.state'] === 'active';

export interface RunFigures {
  readonly tokensPerSecond: number | null; // as everywhere on the page (state/session/speed.ts)
  readonly bytesPerToken: number | null; // read from the disk; null: not recorded
  readonly faultsPerToken: number | null; // major page faults; null: not recorded
}

export const RUN_SQL =
  "SELECT sum(token_count) AS tokens, sum(disk_read_bytes) AS bytes, sum(major_faults) AS faults FROM step WHERE phase = 'generate' AND NOT aborted AND NOT dropped";

export function runFigures(
  session: Pick<Session, 'speed'>,
  { rows }: Pick<QueryRows, 'rows'>,
): RunFigures {
  const [tokens = null, bytes = null, faults = null] = rows[0] ?? [];
  const count = Number(tokens);
  const per = (value: string | number | null): number | null =>
    value === null || count === 0 ? null : Number(value) / count;
  return {
    tokensPerSecond: session.speed?.tokens_per_second ?? null,
    bytesPerToken: per(bytes),
    faultsPerToken: per(faults),
  };
}

export interface RunRow {
  readonly name: string;
  readonly hint: string;
  readonly plain: string;
  readonly planned: string;
  readonly ratio: string; // planned by plain
}

export function runRows(plain: RunFigures | null, planned: RunFigures | null): readonly RunRow[] {
  const row = (
    name: string,
    hint: string,
    of: (run: RunFigures) => number | null,
    format: (value: number) => string,
  ): RunRow => {
    const [a, b] = [plain && of(plain), planned && of(planned)];
    const text = (value: number | null, run: RunFigures | null): string =>
      run === null ? '' : value === null ? 'not recorded' : format(value);
    return { name, hint, plain: text(a, plain), planned: text(b, planned), ratio: ratio(a, b) };
  };
  return [
    row('speed, whole run', 'Generated tokens after the first one, divided by their time', (run) => run.tokensPerSecond, formatSpeed),
    row('read from the disk per token', 'Bytes that the process read from disks while it generated a token', (run) => run.bytesPerToken, (bytes) => formatBytes(Math.round(bytes))),
    row('disk waits per token', 'Major page faults: evaluation waited for the disk', (run) => run.faultsPerToken, perToken),
  ]; // prettier-ignore
}

const perToken = (n: number): string => (n >= 10 || n === 0 ? n.toFixed(0) : n.toFixed(2));

function ratio(plain: number | null, planned: number | null): string {
  if (plain === null || planned === null || plain <= 0) return '';
  const value = planned / plain;
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(2)} ×`;
}
