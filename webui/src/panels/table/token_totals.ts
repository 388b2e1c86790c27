// Totals by token, over the accesses that the view selects in the whole session. The tokens that a
// step evaluates together, i.e. those of a prompt, have one row.
import type { Api, ApiResult } from '../../net/api';
import { MAX_PAGE_ROWS } from '../../net/api';
import type { StepSummary } from '../../net/types';
import { ok } from '../../result';
import type { TraceData } from '../../state/session/trace_data';
import { conditions, type AccessPlan } from './access_rows';

export interface TokenTotal {
  readonly step: number;
  readonly token_id: number; // the first one
  readonly token_count: number;
  readonly phase: string;
  readonly accesses: number;
  readonly bytes_read: number;
  readonly bytes_written: number;
  readonly time: number; // of the ops that make the accesses, in ns
}

// An op's duration is that of all its accesses: it counts once.
export const tokenSql = ({ steps, where }: Pick<AccessPlan, 'steps' | 'where'>): string =>
  `SELECT step, sum(accesses) AS accesses, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written, sum(duration_ns) AS time FROM (SELECT step, op, count(*) AS accesses, sum((NOT write) * size_bytes) AS bytes_read, sum(write * size_bytes) AS bytes_written, max(duration_ns) AS duration_ns FROM access WHERE ${conditions(steps, where)} GROUP BY step, op) GROUP BY step`;

export async function tokenTotals(
  api: Pick<Api, 'query'>,
  session: string,
  data: TraceData,
  plan: AccessPlan,
  signal: AbortSignal,
): ApiResult<readonly TokenTotal[]> {
  const stepOf = (step: number): readonly StepSummary[] => data.steps.slice(step, step + 1).filter((one) => one !== undefined); // prettier-ignore
  // Whole steps: their sums are known.
  if (plan.counts) return ok(plan.steps.flatMap(stepOf).map((step) => totalOf(step, step, opTime(step)))); // prettier-ignore
  const rows: TokenTotal[] = [];
  for (let from = 0; from < plan.steps.length; from += MAX_PAGE_ROWS) {
    const steps = plan.steps.slice(from, from + MAX_PAGE_ROWS);
    const sql = tokenSql({ steps, where: plan.where });
    const page = await api.query(session, sql, MAX_PAGE_ROWS, signal);
    if (!page.ok) return page;
    for (const row of page.value.rows) {
      const [step = 0, accesses = 0, bytes_read = 0, bytes_written = 0, time = 0] = row.map(Number);
      for (const one of stepOf(step))
        rows.push(totalOf(one, { accesses, bytes_read, bytes_written }, time));
    }
  }
  return ok(rows);
}

const opTime = ({ layers }: StepSummary): number => layers.ns.reduce((sum, ns) => sum + ns, 0);

const totalOf = (
  { step, token_id, token_count, phase }: StepSummary,
  { accesses, bytes_read, bytes_written }: Pick<TokenTotal, 'accesses' | 'bytes_read' | 'bytes_written'>, // prettier-ignore
  time: number,
): TokenTotal => ({ step, token_id, token_count, phase, accesses, bytes_read, bytes_written, time }); // prettier-ignore
