// Totals by token, over the accesses that the view selects in the whole session. The tokens that a
// step evaluates together, i.e. those of a prompt, have one row. It names those that were routed to the
// experts of the filter.
import type { Api, ApiResult } from '../../net/api';
import { MAX_PAGE_ROWS } from '../../net/api';
import type { StepSummary } from '../../net/types';
import { ok } from '../../result';
import { sqlFilter, type Term } from '../../state/view/filter';
import type { View } from '../../state/view/view';
import { rangeSql, TOKEN_IS_KNOWN } from '../inspector/expert_tokens';
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
  readonly time: number; // of the ops that make the accesses, in ns; with experts, their part of it
  readonly routed: readonly number[] | null; // the tokens of the experts; null: without experts, or unknown
}

// Whether the filter selects experts: their accesses are those of some tokens of a step.
export const selectsExperts = (terms: readonly Term[]): boolean =>
  terms.some(({ key, not }) => key === 'expert' && !not);

// An op's duration is that of all its accesses: it counts once. The experts of an op share it, as in the
// totals by expert.
export const tokenSql = (
  { steps, where }: Pick<AccessPlan, 'steps' | 'where'>,
  ofExperts = false,
): string =>
  `SELECT step, sum(accesses) AS accesses, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written, sum(duration_ns) AS time FROM (SELECT step, op, count(*) AS accesses, sum((NOT write) * size_bytes) AS bytes_read, sum(write * size_bytes) AS bytes_written, ${ofExperts ? 'sum(self_ns)' : 'max(duration_ns)'} AS duration_ns FROM access WHERE ${conditions(steps, where)} GROUP BY step, op) GROUP BY step`;

// The tokens that were routed to the experts of the filter, of what the view selects.
export function routedSql(
  steps: readonly number[],
  terms: readonly Term[],
  range: View['range'],
): string {
  const parts = [range?.x, range?.y].flatMap((part) => (part ? (rangeSql(part) ?? []) : []));
  const where = [TOKEN_IS_KNOWN, ...sqlFilter('expert', terms).where, ...parts];
  return `SELECT DISTINCT step, token_id FROM expert WHERE ${conditions(steps, where)} ORDER BY step, token_id`;
}

export async function tokenTotals(
  api: Pick<Api, 'query'>,
  session: string,
  data: TraceData,
  plan: AccessPlan,
  view: { readonly terms: readonly Term[]; readonly range: View['range'] },
  signal: AbortSignal,
): ApiResult<readonly TokenTotal[]> {
  const stepOf = (step: number): readonly StepSummary[] => data.steps.slice(step, step + 1).filter((one) => one !== undefined); // prettier-ignore
  // Whole steps: their sums are known.
  if (plan.counts) return ok(plan.steps.flatMap(stepOf).map((step) => totalOf(step, step, opTime(step)))); // prettier-ignore
  const ofExperts = selectsExperts(view.terms);
  const routed = new Map<number, number[]>();
  const rows: TokenTotal[] = [];
  for (let from = 0; from < plan.steps.length; from += MAX_PAGE_ROWS) {
    const steps = plan.steps.slice(from, from + MAX_PAGE_ROWS);
    if (ofExperts) {
      const tokens = await pagesOf(api, session, routedSql(steps, view.terms, view.range), signal);
      if (!tokens.ok) return tokens;
      for (const [step = 0, token = 0] of tokens.value) {
        const known = routed.get(step) ?? [];
        known.push(token);
        routed.set(step, known);
      }
    }
    const sql = tokenSql({ steps, where: plan.where }, ofExperts);
    const page = await api.query(session, sql, MAX_PAGE_ROWS, signal);
    if (!page.ok) return page;
    for (const row of page.value.rows) {
      const [step = 0, accesses = 0, bytes_read = 0, bytes_written = 0, time = 0] = row.map(Number);
      for (const one of stepOf(step))
        rows.push({
          ...totalOf(one, { accesses, bytes_read, bytes_written }, time),
          routed: routed.get(step) ?? null,
        });
    }
  }
  // The tokens of a step are known for the whole session, or not at all.
  return ok(routed.size === 0 ? rows : rows.filter((row) => row.routed !== null));
}

// All rows of a statement of two numbers.
async function pagesOf(
  api: Pick<Api, 'query'>,
  session: string,
  sql: string,
  signal: AbortSignal,
): ApiResult<readonly (readonly number[])[]> {
  const all: (readonly number[])[] = [];
  for (;;) {
    const page = await api.query(session, `${sql} LIMIT ${MAX_PAGE_ROWS} OFFSET ${all.length}`, MAX_PAGE_ROWS, signal); // prettier-ignore
    if (!page.ok) return page;
    all.push(...page.value.rows.map((row) => row.map(Number)));
    if (page.value.rows.length < MAX_PAGE_ROWS) return ok(all);
  }
}

const opTime = ({ layers }: StepSummary): number => layers.ns.reduce((sum, ns) => sum + ns, 0);

const totalOf = (
  { step, token_id, token_count, phase }: StepSummary,
  { accesses, bytes_read, bytes_written }: Pick<TokenTotal, 'accesses' | 'bytes_read' | 'bytes_written'>, // prettier-ignore
  time: number,
): TokenTotal => ({ step, token_id, token_count, phase, accesses, bytes_read, bytes_written, time, routed: null }); // prettier-ignore
