// The options of the table, and their form in links: "rows:accesses,all,by:layer,cols:step.op". A
// missing or invalid part has its default. Pure functions.
export const ROW_KINDS = ['ops', 'steps', 'accesses'] as const;
export type RowKind = (typeof ROW_KINDS)[number];
export const GROUPS = [
  'tensor',
  'layer',
  'op_kind',
  'kernel',
  'expert',
  'token',
  'component',
  'source',
  'phase',
] as const;
export type Group = (typeof GROUPS)[number];
export const GROUP_NAMES: Readonly<Record<Group, string>> = {
  tensor: 'tensor',
  layer: 'layer',
  op_kind: 'op type',
  kernel: 'kernel',
  expert: 'expert',
  token: 'token',
  component: 'component',
  source: 'memory source',
  phase: 'phase',
};

export interface TableOptions {
  readonly rows: RowKind;
  readonly all: boolean; // accesses and totals of the session instead of the selected step
  readonly chosen: boolean; // only the accesses of the selected op or tensor
  readonly by: Group | null; // totals instead of rows
  readonly columns: readonly string[] | null; // null: those shown by default
}

export const defaultTable: TableOptions = {
  rows: 'ops',
  all: false,
  chosen: false,
  by: null,
  columns: null,
};

export function encodeTable({ rows, all, chosen, by, columns }: TableOptions): string {
  const parts: string[] = [];
  if (rows !== defaultTable.rows) parts.push(`rows:${rows}`);
  if (all) parts.push('all');
  if (chosen) parts.push('chosen');
  if (by) parts.push(`by:${by}`);
  if (columns) parts.push(`cols:${columns.join('.')}`);
  return parts.join(',');
}

export function decodeTable(text: string): TableOptions {
  const parts = new Map(
    text.split(',').map((part): [string, string] => {
      const [key = '', value = ''] = part.split(':');
      return [key, value];
    }),
  );
  const columns = (parts.get('cols') ?? '').split('.').filter(Boolean);
  return {
    rows: ROW_KINDS.find((one) => one === parts.get('rows')) ?? defaultTable.rows,
    all: parts.has('all'),
    chosen: parts.has('chosen'),
    by: GROUPS.find((one) => one === parts.get('by')) ?? null,
    columns: columns.length > 0 ? columns : null,
  };
}

// The chosen columns in their order; unknown names are ignored.
export function chosenColumns<C extends { readonly key: string; readonly hidden?: true }>(
  all: readonly C[],
  chosen: readonly string[] | null,
): readonly C[] {
  const found = (chosen ?? []).flatMap((key) => all.find((one) => one.key === key) ?? []);
  return found.length > 0 ? [...new Set(found)] : all.filter(({ hidden }) => !hidden);
}

// `keys` with `key` moved before `before`; null: to the end.
export function movedColumn(
  keys: readonly string[],
  key: string,
  before: string | null,
): readonly string[] {
  const rest = keys.filter((one) => one !== key);
  const at = before === null ? rest.length : rest.indexOf(before);
  return at < 0 ? keys : [...rest.slice(0, at), key, ...rest.slice(at)];
}
