// The same data from REST, SQL and the command line: what "Copy as" gives. Pure functions.
import type { ExpertOfLayer } from '../../state/view/selection';

export interface Reproduction {
  readonly rest: string; // path below the session: "steps/3/ops?from=17&limit=1"; empty: the session
  readonly sql: string;
}

export type CopyKind = 'REST' | 'SQL' | 'CLI';
export const COPY_KINDS: readonly CopyKind[] = ['REST', 'SQL', 'CLI'];

// `origin`: of the server, with the path of the page: "http://localhost:8080/".
export function reproductionText(
  kind: CopyKind,
  { rest, sql }: Reproduction,
  session: string,
  origin: string,
): string {
  switch (kind) {
    case 'REST':
      return new URL(`api/v1/sessions/${encodeURIComponent(session)}${rest === '' ? '' : `/${rest}`}`, origin).href; // prettier-ignore
    case 'SQL':
      return sql;
    case 'CLI':
      return `tt sql ${session}.ttrace "${sql.replace(/["\\$`]/g, '\\$&')}"`;
  }
}

export const ofOp = (step: number, op: number): Reproduction => ({
  rest: `steps/${step}/ops?from=${op}&limit=1`,
  sql: `SELECT * FROM op WHERE step = ${step} AND op = ${op}`,
});

export const ofAccess = (step: number, op: number, access: number, part: number): Reproduction => ({
  rest: `steps/${step}/accesses?op=${op}`,
  sql: `SELECT * FROM access WHERE step = ${step} AND op = ${op} AND access = ${access} AND part = ${part}`,
});

export const ofTensor = (template: number, tensor: number): Reproduction => ({
  rest: `templates/${template}/tensors?from=${tensor}&limit=1`,
  sql: `SELECT * FROM tensor WHERE template = ${template} AND tensor = ${tensor}`,
});

export const ofNode = (template: number, node: number, tensor: number): Reproduction => ({
  rest: `templates/${template}/nodes?from=${node}&limit=1`,
  sql: `SELECT * FROM tensor WHERE template = ${template} AND tensor = ${tensor}`,
});

export const ofToken = (token: number): Reproduction => ({
  rest: `tokens?from=${token}&limit=1`,
  sql: `SELECT * FROM token WHERE token_id = ${token}`,
});

export const ofLayer = (layer: number, step: number): Reproduction => ({
  rest: `breakdown?by=layer&layers=${layer}&from_step=${step}&to_step=${step + 1}`,
  sql: `SELECT op_layer_id, count(*) AS ops, sum(duration_ns) AS duration_ns, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written FROM op WHERE step = ${step} AND op_layer_id = ${layer}`,
});

export const ofExpert = ({ layer, expert }: ExpertOfLayer): Reproduction => ({
  rest: `breakdown?by=expert&layers=${layer}&limit=10000`,
  sql: `SELECT count(*) AS accesses, sum(size_bytes) AS size_bytes FROM access WHERE layer_id = ${layer} AND expert_id = ${expert}`,
});

// SQL has no rows per head: the tensors that are divided into heads.
export const ofHead = (layer: number): Reproduction => ({
  rest: `breakdown?by=head&layers=${layer}&limit=10000`,
  sql: `SELECT tensor_name, attention_heads, count(*) AS accesses, sum(size_bytes) AS size_bytes FROM access WHERE layer_id = ${layer} AND attention_heads IS NOT NULL GROUP BY tensor_name`,
});

export const ofSession: Reproduction = { rest: '', sql: 'SELECT * FROM session' };
