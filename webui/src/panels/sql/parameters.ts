// The parameters of a statement, :step and so on, have the values of the selection. The server takes
// whole statements, so they are written into it. Pure functions.

export type ParameterValue = number | string | null;

interface Piece {
  readonly from: number; // in the source
  readonly to: number;
  readonly text: string; // SQL that replaces the parameter
}

const TOKEN = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|:[a-z_]+/gi;

// The parameters that a statement names, outside of texts and comments, each once.
export const parametersIn = (sql: string): readonly string[] => [
  ...new Set(
    [...sql.matchAll(TOKEN)].flatMap(([text]) => (text.startsWith(':') ? [text.slice(1)] : [])),
  ),
];

const literal = (value: ParameterValue): string =>
  value === null ? 'NULL' : typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`; // prettier-ignore

function piecesOf(sql: string, values: Readonly<Record<string, ParameterValue>>): readonly Piece[] {
  return [...sql.matchAll(TOKEN)].flatMap((match): readonly Piece[] => {
    const [text] = match;
    const value = text.startsWith(':') ? values[text.slice(1)] : undefined;
    return value === undefined
      ? []
      : [{ from: match.index, to: match.index + text.length, text: literal(value) }];
  });
}

export function withValues(sql: string, values: Readonly<Record<string, ParameterValue>>): string {
  let at = 0;
  let out = '';
  for (const { from, to, text } of piecesOf(sql, values)) {
    out += sql.slice(at, from) + text;
    at = to;
  }
  return out + sql.slice(at);
}

// The position in the source of a byte of the statement with values.
export function sourcePosition(
  sql: string,
  values: Readonly<Record<string, ParameterValue>>,
  byte: number,
): number {
  const sent = new TextEncoder().encode(withValues(sql, values));
  let index = new TextDecoder().decode(sent.slice(0, byte)).length;
  for (const { from, to, text } of piecesOf(sql, values)) {
    if (index < from) break;
    if (index < from + text.length) return from;
    index += to - from - text.length;
  }
  return Math.min(index, sql.length);
}
